"""Methods with networks that somebody trained: what a description gives, all that it refuses, and the way from
training to speech. Networks of the fast tests have the shapes of what ships and numbers of no training."""

import hashlib
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from anonymization.app.services import start_anonymization
from anonymization.cli.records import RECORD
from anonymization.methods import registry
from anonymization.methods.content_decoder import method as content_decoder
from anonymization.methods.content_decoder import network_files
from anonymization.methods.content_decoder.retrained import FILES, find_retrained, read_training
from anonymization.methods.contract import MethodError, VoiceRequest
from anonymization.methods.registry import broken, find_method, get_method, methods
from common.errors import InputError
from portal.core.models import AuditEvent
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from portal.submissions.models import SubmittedFile
from portal.submissions.services import create_baseline
from speech.model_files.checkpoints import read_header
from tests.anonymization.cli.shell import DEMO
from tests.evaluation.commands import Shell
from tests.evaluation.engines import require_engine, require_model_file
from tests.portal.factories import make_corpus, make_organizer

numpy_files = pytest.importorskip("safetensors.numpy", reason="networks are files of safetensors")
NAMES = ("ann", "ben", "cat")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "anonymizers.md"


def train(folder, recipe="content-decoder", seed=1, decoder=None, cut=False, names=NAMES, **changes):
    """What a training leaves, of one number."""
    folder.mkdir(parents=True, exist_ok=True)
    hashes = {}
    for network, name in FILES[recipe].items():
        shapes, _ = read_header(getattr(network_files.SHIPPED, network).path)
        rows = {"vectors": (len(names), 256), "f0": (len(names), 2)} if network == "voices" else {}
        shapes = {tensor: rows.get(tensor, shape) for tensor, shape in shapes.items()}
        if cut:
            shapes.popitem()
        tensors = {tensor: np.full(shape, seed / 64, np.float16) for tensor, shape in shapes.items()}
        texts = (
            {"names": " ".join(names), "genders": " ".join(("fmf" * 20)[: len(names)])} if network == "voices" else None
        )
        content = numpy_files.save(tensors, metadata=texts)
        (folder / name).write_bytes(content)
        hashes[name] = hashlib.sha256(content).hexdigest()
    card = {
        "recipe": {"name": recipe},
        "data": {"utterances": 7, "speakers": 3, "seconds": 60.0, "licence": "CC0, us"},
        "speaker_encoder": "ge2e",
        **({"decoder_sha256": decoder} if decoder else {}),
        "sha256": hashes,
        **changes,
    }
    (folder / "card.json").write_text(json.dumps(card))
    return folder


def describe(path, method="asr-bn", trained=("decoder",), name="mine", more=""):
    lines = [
        f'name = "{name}"',
        'title = "Ours"',
        f'method = "{method}"',
        f"trained = {json.dumps(list(trained))}",
        more,
    ]
    path.write_text("\n".join(lines))
    return path


def change_card(folder, **changes):
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(card | changes))


def sha256_of(folder):
    return json.loads((folder / "card.json").read_text())["sha256"]["weights.safetensors"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The operator's folder of descriptions."""
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def refuse(path):
    with pytest.raises(MethodError) as error:
        find_method(str(path))
    return str(error.value)


def test_description_gives_the_method_with_its_networks(tmp_path):
    """That of the documentation."""
    decoder = train(tmp_path / "decoder")
    [text] = re.findall(r'^```toml title="mine.toml"\n(.*?)^```', PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    built_in, method = get_method("asr-bn"), find_method(str(tmp_path / "mine.toml"))
    assert (method.name, method.title) == ("asr-bn-mine", "ASR-BN by our own decoder")
    assert method.options == built_in.options
    assert method.version.startswith(f"{built_in.version}+")
    assert method.reference.endswith("; asr-bn with content-decoder of 7 utterances of 3 speakers (CC0, us)")
    hashes = json.loads((decoder / "card.json").read_text())["sha256"]
    assert find_retrained(method) == {"decoder": sha256_of(decoder), "voices": hashes["voices.safetensors"]}
    assert find_retrained(built_in) == {} == find_retrained(get_method("mcadams-2022"))
    states = {part.slot: part.state for part in method.pipeline}
    assert states == {"content": "retrained", "voice": "drawn", "prosody": "computed", "synthesis": "retrained"}
    assert [part.title for part in method.pipeline if part.slot == "voice"] == ["One of 3 speakers, GE2E vector"]
    voices = method.plan_voices([VoiceRequest(f"{number:064x}", "f") for number in range(20)])
    assert {name for voice in voices for name in voice.mixture} == set(NAMES)
    assert not set(NAMES) & set(built_in.plan_voices([VoiceRequest("0" * 64, "f")])[0].mixture)


def test_pool_without_the_gender_of_a_speaker_gives_voices_of_all(tmp_path, monkeypatch):
    train(tmp_path / "decoder")
    monkeypatch.setattr(content_decoder, "_own_vector", lambda _: None)
    method = find_method(str(describe(tmp_path / "mine.toml", "b1-lite")))
    [man, unknown] = method.plan_voices([VoiceRequest("1" * 64, "m"), VoiceRequest("1" * 64, "x")])
    assert (set(man.mixture), set(unknown.mixture)) == ({"ben"}, set(NAMES))


def test_other_weights_are_another_version_at_once(folder):
    train(folder / "decoder")
    describe(folder / "mine.toml")
    first = get_method("mine").version
    assert get_method("mine") is get_method("mine")
    train(folder / "decoder", seed=2)
    assert get_method("mine").version != first
    (folder / "decoder" / "card.json").unlink()
    assert "mine" not in [method.name for method in methods()]
    assert [one.source for one in broken()] == [str(folder / "mine.toml")]
    assert "has no card.json" in broken()[0].reason


def test_weights_that_change_under_a_method_are_not_loaded(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed here")
    train(tmp_path / "decoder")
    method = find_method(str(describe(tmp_path / "mine.toml")))
    train(tmp_path / "decoder", seed=2)
    with pytest.raises(MethodError, match=r"weights.safetensors is not the file that its card names"):
        network_files.load_decoder(method.networks.decoder)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"method": "b9"}, "expected one of asr-bn, b1-lite, b1a, b1b, b1-world, joint-hifigan"),
        ({"method": "mcadams-2022"}, "mcadams-2022 reads no trained network; expected one of asr-bn"),
        ({"trained": ["nowhere"]}, "nowhere: expected a folder of a training, found none"),
        ({"trained": ["map"]}, "map: asr-bn reads no recognizer-map, but content-decoder"),
        ({"trained": ["cut"]}, "does not hold the network of this version: 1 missing: "),
        ({"trained": ["other-voices"]}, "expected vectors of speakers by ge2e, found ecapa"),
        ({"trained": ["no-card"]}, "no-card has no card.json: no training has ended there"),
        ({"trained": ["changed"]}, "weights.safetensors is not the file that its card names"),
        ({"trained": ["pickle"]}, "is no checkpoint that can be read"),
        ({"name": "asr-bn"}, 'expected a name of its own, found that of the built-in "asr-bn"'),
        ({"method": "t40"}, "t40 also needs the f0-regressor of "),
        ({"method": "joint-hifigan"}, "vp train-network joint-hifigan OUT --decoder "),
        (
            {"method": "t40", "trained": ["stranger"]},
            "trained for the decoder that ships, found one for another decoder",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(changes, expected, tmp_path):
    train(tmp_path / "decoder")
    wanted = {*changes.get("trained", ())}
    if "map" in wanted:
        train(tmp_path / "map", "recognizer-map")
    if "stranger" in wanted:
        train(tmp_path / "stranger", "f0-regressor", decoder="0" * 64)
    for name in wanted & {"cut", "other-voices", "no-card", "changed", "pickle"}:
        place = train(tmp_path / name, cut=name == "cut", speaker_encoder="ecapa" if name == "other-voices" else "ge2e")
        spoil(place, name)
    assert expected in refuse(describe(tmp_path / "mine.toml", **changes))


def spoil(place, how):
    weights, card = place / "weights.safetensors", place / "card.json"
    if how == "no-card":
        card.unlink()
    elif how == "changed":
        weights.write_bytes(weights.read_bytes() + b" ")
    elif how == "pickle":
        content = b"\x80\x04\x95pickle"
        weights.write_bytes(content)
        hashes = json.loads(card.read_text())["sha256"]
        change_card(place, sha256=hashes | {weights.name: hashlib.sha256(content).hexdigest()})


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    train(tmp_path / "decoder")
    (tmp_path / "decoder" / "voices.safetensors").unlink()
    path = describe(tmp_path / "mine.toml", "b9", ("decoder", "nowhere"), name="No Name", more="steps = 3")
    sentence = refuse(path)
    for part in ('found "b9"', "voices.safetensors cannot be read", "nowhere: expected", "found 'No Name'", '"steps"'):
        assert part in sentence


def test_regressor_for_the_own_decoder_and_map_for_any_are_taken(tmp_path):
    decoder = train(tmp_path / "decoder")
    train(tmp_path / "regressor", "f0-regressor", decoder=sha256_of(decoder))
    train(tmp_path / "map", "recognizer-map")
    one = find_method(str(describe(tmp_path / "one.toml", "t40", ("decoder", "regressor"))))
    assert list(find_retrained(one)) == ["decoder", "voices", "regressor"]
    two = find_method(str(describe(tmp_path / "two.toml", "t18-asr", ("map",))))
    assert list(find_retrained(two)) == ["recognizer_map"]
    assert {part.slot: part.state for part in two.pipeline}["voice"] == "retrained"
    assert two.networks.decoder == network_files.SHIPPED.decoder


def test_soft_units_bring_their_pool(tmp_path):
    train(tmp_path / "decoder")
    train(tmp_path / "units", "soft-units-decoder", names=("dan", "eve"))
    one = find_method(str(describe(tmp_path / "one.toml", "ssl-content", ("units",))))
    assert list(find_retrained(one)) == ["voices", "soft_units_decoder"]
    assert [part.state for part in one.pipeline] == ["retrained", "drawn", "computed", "retrained"]
    assert set(one._pool().names) == {"dan", "eve"}
    assert "reads no content-decoder, but soft-units-decoder" in refuse(
        describe(tmp_path / "three.toml", "ssl-content", ("decoder",))
    )


def test_network_of_another_size_is_read_and_compared_with_what_its_card_says(tmp_path):
    torch = pytest.importorskip("torch")
    from speech.conversion.content_decoder import ContentDecoder
    from speech.conversion.shape import DecoderShape
    from speech.model_files.checkpoints import save_checkpoint

    decoder, wide = train(tmp_path / "decoder"), DecoderShape(bottleneck=8, width=12, blocks=2, codes=5)
    torch.manual_seed(0)
    save_checkpoint(decoder / "weights.safetensors", ContentDecoder(wide))
    digest = hashlib.sha256((decoder / "weights.safetensors").read_bytes()).hexdigest()
    hashes = json.loads((decoder / "card.json").read_text())["sha256"]
    changes = {"sha256": hashes | {"weights.safetensors": digest}}
    change_card(decoder, **changes, recipe={"name": "content-decoder", "shape": asdict(wide)})
    method = find_method(str(describe(tmp_path / "mine.toml")))
    converter = method._converter()
    assert converter.encode(np.zeros((3, 1536), np.float32)).shape == (3, 8)
    change_card(decoder, recipe={"name": "content-decoder", "shape": asdict(replace(wide, blocks=3))})
    with pytest.raises(InputError, match="does not hold this network"):
        find_method(str(describe(tmp_path / "other.toml", name="other")))._converter()
    change_card(decoder, recipe={"name": "content-decoder", "shape": {"wide": 3}})
    assert "expected the card of a training, found another file" in refuse(describe(tmp_path / "odd.toml"))


def test_regressor_learns_from_the_decoder_that_is_named_and_nothing_else_takes_one(tmp_path, capsys):
    pytest.importorskip("torch", reason="torch is not installed here")
    shell = Shell(capsys)
    decoder, other = train(tmp_path / "decoder"), train(tmp_path / "map", "recognizer-map")
    assert read_training(decoder).files["decoder"].sha256 == sha256_of(decoder)
    call = ["train-network", "f0-regressor", tmp_path / "out", "--data", DEMO, "--decoder"]
    assert "expected a folder of content-decoder, found one of recognizer-map" in shell(*call, other).err
    call[1] = "recognizer-map"
    assert "--decoder: recognizer-map reads no decoder" in shell(*call, decoder).err


def start_in_portal(corpus):
    for name in ("whisper-base", "hifigan-universal"):
        require_model_file(name)
    submission = create_baseline(corpus=corpus, name="b", title="B")
    data_sets = corpus.data_sets.filter(name="tones_trials_f")
    [run] = start_anonymization(submission=submission, data_sets=data_sets, method="mine", seed=1)
    return run


@pytest.mark.django_db
def test_portal_offers_it_and_its_record_tells_which_weights(folder, client):
    pytest.importorskip("torch", reason="torch is not installed here")
    decoder = train(folder / "decoder")
    method = find_method(str(describe(folder / "mine.toml")))
    corpus = make_corpus("tones", speakers=4)
    run = start_in_portal(corpus)
    client.force_login(make_organizer())
    assert f"mine, recipe version {method.version}" in client.get("/systems/new/tones/").content.decode()
    assert (run.method_title, run.recipe_version) == ("Ours", method.version)
    [entry] = AuditEvent.objects.filter(action="anonymization.started")
    assert entry.data["retrained"]["decoder"] == sha256_of(decoder)
    page = client.get("/systems/b/runs/tones_trials_f/")
    assert "trained again" in page.content.decode()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_job_of_the_portal_anonymises_by_it(folder):
    train(folder / "decoder", names=[f"s{number}" for number in range(60)])
    describe(folder / "mine.toml")
    run = start_in_portal(make_corpus("tones", speakers=4))
    ended = execute(run.job.pk)
    assert (ended.state, ended.failure) == (JobState.SUCCEEDED, "")
    assert SubmittedFile.objects.count() == run.data_set.utterances.count() > 2


def changed(*values: str) -> list[str]:
    """As options of a command."""
    return [word for value in values for word in ("--set", value)]


@pytest.mark.slow
def test_speech_is_anonymised_by_networks_that_a_command_trained(tmp_path, capsys):
    """Decoder, then a regressor of its codes, then speech by both and by the decoder alone."""
    require_engine("ge2e")
    for name in ("whisper-base", "hifigan-universal"):
        require_model_file(name)
    shell = Shell(capsys)
    speech = tmp_path / "speech"
    for speaker in ("d01", "d02", "d03"):
        (speech / speaker).mkdir(parents=True)
        source = sorted((DEMO / speaker).glob("*.flac"))[0]
        (speech / speaker / source.name).write_bytes(source.read_bytes())
    values = ["--data", speech, *changed("steps=2", "batch=1", "crop=8", "warm_up=1")]
    assert shell("train-network", "content-decoder", tmp_path / "decoder", *values, *changed("variants=0")).code == 0
    decoder = ["--decoder", tmp_path / "decoder"]
    assert shell("train-network", "f0-regressor", tmp_path / "regressor", *values, *decoder).code == 0
    outputs = {}
    for method, trained in (("asr-bn", ["decoder"]), ("t40", ["decoder", "regressor"])):
        path, out = describe(tmp_path / f"{method}.toml", method, trained), tmp_path / f"out-{method}"
        answer = shell("anonymize", speech / "d01", out, "--method", path, "--seed", 1, "--jobs", 1)
        assert answer.code == 0, answer.err
        [written] = out.rglob("d01-0001.*")
        outputs[method] = soundfile.read(written, dtype="int16")[0]
        record = json.loads((out / RECORD).read_text())
        assert record["retrained"]["decoder"] == sha256_of(tmp_path / "decoder")
    [source] = (speech / "d01").iterdir()
    assert {each.size for each in outputs.values()} == {soundfile.info(source).frames}
    assert all(each.any() for each in outputs.values())
    assert not np.array_equal(*outputs.values())
