"""What the demo writes on the terminal, and what it leaves out: mails to its own people, while it is at work."""

from portal.demo.terminal import QuietMail

HEAD = "Mail to wide@demo.example: Demo challenge: T01-p1 version 1 was accepted"


def lines_of(quiet_until: int, *given: str) -> list[str]:
    """What is printed of these lines when the demo is over after so many of them."""
    printed: list[str] = []
    say = QuietMail(printed.append, "demo.example")
    for number, line in enumerate(given):
        say.over = number >= quiet_until
        say(line)
    return printed


def test_mail_to_the_people_of_the_demo_is_left_out_with_its_text() -> None:
    mail = (f"worker    | {HEAD}", "worker    |   | Hello,", "worker    |   | http://127.0.0.1:8000/")
    assert lines_of(9, "web       | ready", *mail, "worker    | WARNING slow") == [
        "web       | ready",
        "worker    | WARNING slow",
    ]


def test_mail_to_somebody_else_is_printed_whole_also_between_two_of_the_demo() -> None:
    theirs = ["worker    | Mail to ada@uni.example: Your account", "worker    |   | Hello Ada,"]
    ours = [f"worker    | {HEAD}", "worker    |   | Hello,"]
    assert lines_of(9, *ours, *theirs, *ours) == theirs


def test_every_mail_is_printed_once_the_demo_is_over() -> None:
    given = [f"worker    | {HEAD}", "worker    |   | Hello,"]
    assert lines_of(0, *given) == given
