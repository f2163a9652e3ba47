"""Programs of others as anonymisers: what they are given, what of their output is taken, how each problem is told."""

import json
import re
from concurrent.futures import CancelledError

import numpy as np
import pytest
import soundfile

from anonymization.methods.contract import MethodError, PseudoSpeaker, VoicedUtterance, find_missing_members
from anonymization.methods.external.method import load_command, read_output, watching
from tests.anonymization.programs import confined, describe, items, make_command, noise, voice

WARMTH = {"name": "warmth", "low": 0.0, "high": 2.0, "meaning": "how warm", "unit": " K", "gap": [0.9, 1.1]}
LOUD = {"name": "loud", "default": False, "meaning": "whether it is loud"}
DEPTH = {"name": "depth", "default": 3, "low": 1, "high": 9, "meaning": "how deep"}
KIND = {"name": "kind", "default": "soft", "choices": ["soft", "hard"], "meaning": "which kind"}
ECHO = """
import json, sys, wave
with wave.open(sys.stdin.buffer) as file:
    rate, data = file.getframerate(), file.readframes(file.getnframes())
with wave.open(sys.stdout.buffer, "wb") as file:
    file.setnchannels(1); file.setsampwidth(2); file.setframerate(rate); file.writeframes(data[::-1])
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where the files between portal and command lie; none may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def turned(samples):
    """What the programs of these tests do to speech: its bytes from the last to the first."""
    return np.frombuffer(samples.tobytes()[::-1], np.int16)


def test_command_is_an_anonymiser_that_describes_itself(tmp_path):
    changes = {"parameters": [WARMTH], "options": [LOUD, DEPTH, KIND], "needs_gpu": False}
    command = make_command(tmp_path / "own", "", **changes)
    assert not find_missing_members(command)
    assert (command.name, command.title, command.reference) == ("hush", "Hush", "A team")
    assert re.fullmatch(r"1\+[0-9a-f]{8}", command.version)
    assert command.is_deterministic
    assert not command.needs_gpu
    [warmth] = command.parameters
    assert (warmth.name, warmth.unit, warmth.gap, warmth.extent) == ("warmth", "K", (0.9, 1.1), pytest.approx(1.8))
    assert [(option.name, option.default, option.low) for option in command.options] == [
        ("loud", False, None),
        ("depth", 3, 1.0),
        ("kind", "soft", None),
    ]


def test_version_follows_the_description(tmp_path):
    before = make_command(tmp_path / "own", "")
    after = make_command(tmp_path / "own", "", limits={"memory_mb": 100})
    assert before.version != after.version


@confined
def test_batch_of_folders_is_one_call_with_a_manifest(tmp_path):
    """The program is run as from a terminal, where it can keep what it was told."""
    folder = tmp_path / "own"
    code = f"""
    import json
    told = [sys.argv[4:], manifest.read_text(), sorted(os.listdir(source))]
    Path({str(folder / "told")!r}).write_text(json.dumps(told))
    sys.exit(1)
    """
    command = make_command(
        folder,
        code,
        isolation="none",
        command=[
            "{python}",
            "program.py",
            "{input_folder}",
            "{output_folder}",
            "{manifest}",
            "x{loud}{depth}{kind}",
            "{rate}",
            "{threads}",
        ],
        parameters=[WARMTH],
        options=[LOUD, DEPTH, KIND],
    )
    batch = [
        VoicedUtterance(noise(100), voice("0f" * 32, warmth=0.25)),
        VoicedUtterance(noise(0), voice(warmth=1.5)),
        VoicedUtterance(noise(9), voice(warmth=2.0)),
    ]
    with pytest.raises(MethodError, match="It ended with exit code 1"):
        command.anonymize_batch(batch, 16_000, options={"loud": True}, threads=2)
    told, manifest, files = json.loads((folder / "told").read_text())
    assert told == ["xtrue3soft", "16000", "2"]
    assert files == ["000001.wav", "000003.wav"]  # what has no samples is not given
    assert manifest.splitlines() == [
        "utterance,voice,seed,warmth",
        f"000001,{'0f' * 32},{0x0F0F0F0F >> 1},0.25",
        f"000003,{'5e' * 32},{0x5E5E5E5E >> 1},2.0",
    ]


@confined
def test_outputs_come_back_in_order(tmp_path):
    command = make_command(tmp_path / "own", "copy()", duration_tolerance_s=0)
    batch = items(16_000, 0, 1, 4000)
    outputs = command.anonymize_batch(batch, 8_000)
    assert all(output.dtype == np.int16 for output in outputs)
    assert [output.tolist() for output in outputs] == [turned(item.samples).tolist() for item in batch]
    assert command.anonymize_batch([], 16_000) == []


@confined
def test_voice_in_the_command_makes_a_call_for_each_voice(tmp_path):
    code = """
    import struct
    for path in source.iterdir():
        write(output / path.name, struct.pack("<2h", round(100 * float(sys.argv[4])), len(os.listdir(source))))
    """
    command = make_command(
        tmp_path / "own",
        code,
        command=["{python}", "program.py", "{input_folder}", "{output_folder}", "{manifest}", "{warmth}"],
        parameters=[WARMTH],
    )
    voices = [voice("aa" * 32, warmth=0.5), voice("bb" * 32, warmth=1.25), voice("aa" * 32, warmth=0.5)]
    outputs = command.anonymize_batch([VoicedUtterance(noise(50), each) for each in voices], 16_000)
    assert [output.tolist() for output in outputs] == [[50, 2], [125, 1], [50, 2]]


@confined
def test_streams_take_and_give_one_utterance_a_call(tmp_path):
    command = make_command(tmp_path / "own", ECHO, command=["{python}", "program.py"])
    batch = items(2000, 0, 300)
    outputs = command.anonymize_batch(batch, 16_000)
    assert [output.tolist() for output in outputs] == [turned(item.samples).tolist() for item in batch]


@pytest.mark.parametrize("isolation", ["none", pytest.param("full", marks=confined)])
def test_files_take_and_give_one_utterance_a_call(isolation, tmp_path):
    """The command is a line of the shell; what it writes where it starts is not left in its folder."""
    echo = ECHO.replace("sys.stdin.buffer", "sys.argv[1]").replace("sys.stdout.buffer", "sys.argv[2]")
    line = "{python} program.py {input} {output} && test -s {output} # {seed}"
    command = make_command(tmp_path / "own", "open('scratch', 'w').close()\n" + echo, command=line, isolation=isolation)
    batch = items(2000, 0, 300)
    assert [output.tolist() for output in command.anonymize_batch(batch, 16_000)] == [
        turned(item.samples).tolist() for item in batch
    ]
    assert sorted(path.name for path in (tmp_path / "own").glob("s*")) == []


LINES = {
    "quotes": """cp "{input}" '{output}'""",
    "beside": 'cat "../models/m.txt" && cp {input} {output}',
    "braces": """gain=3; echo ${gain} | awk '{print}' | sed -n '1{p}' | grep 3 && cp {input} {output}""",
    "variable": "input=program.py; cat ${input} && cp {input} {output}",
}


@pytest.mark.parametrize("kind", LINES)
def test_line_of_the_shell_works_as_from_its_folder(kind, tmp_path, monkeypatch):
    """Whatever signs are in the paths of the folder and of the temporary files."""
    beside = tmp_path / 'it\'s "$HOME"; a blank'
    monkeypatch.setattr("tempfile.tempdir", str(beside))
    (beside / "models").mkdir(parents=True)
    for path in ("models/m.txt", "../top.txt"):
        (beside / path).write_text("x")
    command = make_command(beside / "my own", "", command=LINES[kind], isolation="none")
    samples = noise(1600)
    assert command.anonymize(samples, 16_000, voice()).tolist() == samples.tolist()


@confined
def test_confined_command_finds_beside_its_folder_what_it_may_read(tmp_path):
    for name in ("models", "others"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.txt").write_text("x")
    line = "cp ../models/m.txt m && cp {input} {output} && ls .. >&2 && cat ../others/m.txt"
    command = make_command(tmp_path / "own", "", command=line, reads=["../models"])
    with pytest.raises(MethodError, match=r"printed: models / own / cat: .*No such file"):
        command.anonymize(noise(1600), 16_000, voice())


UNUSABLE = {
    "none": ("echo sorry {input}; true {output}", "It ended without writing {output}. The last that it printed: sorry"),
    "code": (
        "cat {output} {input} > /dev/null",
        "It ended with exit code 1, expected 0. The last that it printed: cat: {output}:",
    ),
    "time": ("sleep 9; cat {input} {output}", "It ran longer than its limit of 1 s and was ended."),
}


@pytest.mark.parametrize(("line", "sentence"), UNUSABLE.values(), ids=UNUSABLE)
def test_failure_of_a_command_of_files_is_a_sentence_with_its_line(line, sentence, tmp_path):
    command = make_command(tmp_path / "own", "", command=line, isolation="none", limits={"time_limit_s": 1})
    soundfile.write(tmp_path / "own" / "stereo.wav", np.zeros((100, 2)), 16_000)
    with pytest.raises(MethodError) as raised:
        command.anonymize(noise(1600), 16_000, voice())
    assert sentence in str(raised.value)
    assert "Command: " in str(raised.value)


def test_free_command_ends_when_the_run_is_stopped(tmp_path):
    command = make_command(tmp_path / "own", "", command="sleep 1000; cat {input} {output}", isolation="none")
    with watching(should_stop=lambda: True), pytest.raises(CancelledError):
        command.anonymize(noise(1600), 16_000, voice())


@confined
def test_command_with_a_rate_of_its_own_gets_it_and_the_output_is_converted_back(tmp_path):
    command = make_command(tmp_path / "own", "copy()", rate_hz=8000)
    notes = []
    with watching(note=notes.append):
        outputs = command.anonymize_batch(items(1600, 800), 16_000)
    assert [output.size for output in outputs] == [1600, 800]
    assert notes == ["hush: 2 of 2 outputs: resampled from 8000 Hz to 16000 Hz by soxr."]


@confined
def test_output_at_a_foreign_rate_is_converted_with_a_note_or_refused(tmp_path):
    code = "write(output / '000001.wav', bytes(2 * 4410), rate=44100)"
    notes = []
    with watching(note=notes.append):
        output = make_command(tmp_path / "own", code).anonymize(noise(1600), 16_000, voice())
    assert (output.size, notes) == (1600, ["hush: 1 of 1 outputs: resampled from 44100 Hz to 16000 Hz by soxr."])
    strict = make_command(tmp_path / "own", code, output_rate="refuse")
    with pytest.raises(MethodError, match=r"000001.wav cannot be used: expected 16000 Hz, found 44100 Hz\."):
        strict.anonymize(noise(1600), 16_000, voice())


@confined
def test_output_of_other_encodings_is_rounded_with_a_note(tmp_path):
    code = """
    import numpy, soundfile
    soundfile.write(output / "000001.wav", numpy.array([0.5, -1.0, 1.0, 1.5]), 16000, subtype="FLOAT")
    """
    notes = []
    with watching(note=notes.append):
        output = make_command(tmp_path / "own", code).anonymize(noise(4), 16_000, voice())
    assert output.tolist() == [16384, -32768, 32767, 32767]
    assert notes == ["hush: 1 of 1 outputs: FLOAT samples rounded to 16 bits."]


PROBLEMS = {
    "stereo": (
        "write(output / '000001.wav', bytes(400), channels=2)",
        r"Its output for 000001.wav cannot be used: expected one channel, found 2\.",
    ),
    "not-a-number": (
        "import numpy, soundfile\n"
        "soundfile.write(output / '000001.wav', numpy.full(100, numpy.nan), 16000, subtype='FLOAT')",
        r"000001.wav cannot be used: [Ee]xpected samples that are numbers, found NaN or infinity",
    ),
    "no-audio": ("(output / '000001.wav').write_text('sorry')", "expected a WAV or FLAC file, found text"),
    "cut": (
        "copy()\nos.truncate(output / '000001.wav', 1000)",
        "000001.wav cannot be used: expected 3200 bytes of samples, as the header says, found 956",
    ),
    "nothing": ("print('no model')", r"It left no output for 000001.wav; 0 of 1 are there. The last .*: no model"),
    "more": (
        "copy()\nfor n in range(3): (output / f'extra\\n{n}').touch()",
        r'It left an unexpected file: "extra\?0" and 2 others',
    ),
    "link": ("(output / '000001.wav').symlink_to(source / '000001.wav')", "expected a file of its own, found a link"),
    "hard-link": (
        "copy()\n(Path(os.environ['HOME']) / 'x').hardlink_to(output / '000001.wav')",
        "expected a file of its own, found a folder, a pipe or a link",
    ),
    "pipe": ("os.mkfifo(output / '000001.wav')", "expected a file of its own, found a folder, a pipe or a link"),
    "too-long": ("write(output / '000001.wav', bytes(2 * 16000 * 11))", r"expected at most 10.4 s, found 11.0 s"),
    "too-large": (
        "open(output / '000001.wav', 'wb').truncate(500_000_000)",
        "expected at most .* bytes, found 500000000",
    ),
    "folder-without-rights": ("os.umask(0o777)\n(output / 'deep').mkdir()", "It left no output for 000001.wav"),
}


@confined
@pytest.mark.parametrize(("code", "sentence"), PROBLEMS.values(), ids=PROBLEMS)
def test_problem_of_a_command_is_a_sentence(code, sentence, tmp_path):
    command = make_command(tmp_path / "own", code)
    with pytest.raises(MethodError) as raised:
        command.anonymize(noise(1600), 16_000, voice())
    assert str(raised.value).startswith("hush failed. ")
    assert re.search(sentence, str(raised.value))


@confined
def test_output_of_another_duration_is_refused_where_it_must_be_kept(tmp_path):
    code = "write(output / '000001.wav', bytes(2 * 1500))"
    within = make_command(tmp_path / "own", code, duration_tolerance_s=0.01)
    assert within.anonymize(noise(1600), 16_000, voice()).size == 1500
    beyond = make_command(tmp_path / "own", code, duration_tolerance_s=0.005)
    with pytest.raises(MethodError, match=r"expected 0.100 s within 0.005 s, found 0.094 s"):
        beyond.anonymize(noise(1600), 16_000, voice())


def test_pipe_in_place_of_an_output_does_not_hang(tmp_path):
    with pytest.raises(MethodError, match="found a link or none"):
        read_output(tmp_path / "nothing.wav", given=1, given_rate=16_000, tolerance_s=None)


@confined
def test_foreign_voice_and_option_are_refused_before_anything_runs(tmp_path):
    command = make_command(tmp_path / "own", "", parameters=[WARMTH])
    with pytest.raises(MethodError, match=r"warmth of hush must be from 0 to 2 K, outside 0.9 to 1.1; found 1."):
        command.anonymize(noise(10), 16_000, voice(warmth=1.0))
    with pytest.raises(MethodError, match="hush takes the parameters warmth; the pseudo-speaker has none"):
        command.anonymize(noise(10), 16_000, PseudoSpeaker("00", {}))
    with pytest.raises(MethodError, match="hush has no option colour"):
        command.anonymize(noise(10), 16_000, voice(warmth=0.5), options={"colour": True})


def test_missing_program_folder_and_graphics_card_are_told(tmp_path):
    command = make_command(tmp_path / "own", "", command=["hush-7", "{input}", "{output}"], isolation="limited")
    assert command.missing().startswith('hush cannot run: There is no program "hush-7" in /usr/local/bin')
    with pytest.raises(MethodError, match="hush-7"):
        command.anonymize(noise(10), 16_000, voice())
    command = make_command(tmp_path / "own", "", reads=["models"], isolation="limited")
    assert command.missing().startswith(f"hush needs {tmp_path}/own/models, which is not there.")


MISTAKES = {
    "name": ({"name": "Hush 7"}, "name: expected small letters, digits and hyphens, found 'Hush 7'."),
    "no-command": ({"command": []}, "command: expected the program and its arguments, found nothing."),
    "no-output": ({"command": ["cp", "{input}"]}, "command: expected {output} with {input}, found none."),
    "placeholder": ({"command": ["cp", "{inptu}", "{output}"]}, ", voice, found {inptu}."),
    "both": (
        {"command": "cp {input} {output} {manifest}"},
        "expected files or folders, found {input} and placeholders of folders.",
    ),
    "key": ({"comand": "x"}, 'there is no key "comand". Did you mean command?'),
    "isolation": ({"isolation": "any"}, "isolation: expected one of full, limited, none, found 'any'."),
    "limit": ({"limits": {"memory_mb": "4 GB"}}, "limits: memory_mb: expected a number from 1 to 1e+07, found '4 GB'."),
    "gap": ({"parameters": [{**WARMTH, "gap": [0, 3]}]}, "parameters 1: gap: expected [from, to] between 0 and 2"),
    "twice": (
        {"parameters": [WARMTH, WARMTH]},
        'expected another name for each parameter and option, found "warmth" twice.',
    ),
    "reserved": ({"options": [{**LOUD, "name": "seed"}]}, 'found "seed" reserved for a placeholder.'),
    "five": (
        {"parameters": [{**WARMTH, "name": f"p{n}"} for n in range(5)]},
        "expected at most 4 parameters, found 5.",
    ),
    "default": ({"options": [{**KIND, "default": "odd"}]}, "options 1: default: The option kind is one of soft, hard"),
    "folder-of-all": ({"folder": "/"}, "the command may read all of /, which holds "),
    "temporary-files": ({"reads": [".."]}, "which holds the temporary files of all. Put it in a folder of its own."),
}


@pytest.mark.parametrize(("changes", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_in_a_description_is_told_with_its_place(changes, sentence, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    path = describe(own, **changes)
    with pytest.raises(MethodError) as raised:
        load_command(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert sentence in str(raised.value)


def test_data_of_the_portal_within_the_system_is_told(tmp_path, monkeypatch):
    command = make_command(tmp_path / "own", "", isolation="limited")
    monkeypatch.setenv("PORTAL_DATA_DIR", "/usr/bin")
    assert command.missing() == "hush would read the data of the portal, which are in /usr. Move PORTAL_DATA_DIR."


def test_command_beside_the_data_of_the_portal_is_refused(tmp_path, monkeypatch):
    own = tmp_path / "own"
    (own / "var").mkdir(parents=True)
    monkeypatch.setenv("PORTAL_DATA_DIR", str(own / "var"))
    with pytest.raises(MethodError, match="which holds the data of the portal"):
        load_command(describe(own))
    monkeypatch.setenv("PORTAL_DATA_DIR", str(tmp_path))
    with pytest.raises(MethodError, match="which is inside the data of the portal"):
        load_command(describe(own))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe", "expected a TOML file in UTF-8, found"),
        (b"#" * 300_000, "expected a description of at most 262144 bytes, found 300000"),
        (b"", "name: expected small letters, digits and hyphens, found nothing"),
    ],
)
def test_file_that_is_no_description_is_refused(content, sentence, tmp_path):
    path = tmp_path / "hush.toml"
    path.write_bytes(content)
    with pytest.raises(MethodError, match=re.escape(sentence)):
        load_command(path)
    with pytest.raises(MethodError, match="the description cannot be read"):
        load_command(tmp_path / "none.toml")


@confined
def test_command_that_needs_a_graphics_card_is_offered_where_none_is_and_refuses_to_run_there(tmp_path, monkeypatch):
    """The portal's pages and its workers are different machines."""
    command = make_command(tmp_path / "own", "copy()", needs_gpu=True)
    monkeypatch.setattr("anonymization.methods.external.method.has_graphics_card", lambda: False)
    assert command.missing() == ""
    with pytest.raises(MethodError, match="hush needs a graphics card; this machine shows none"):
        command.anonymize_batch(items(800), 16_000)
