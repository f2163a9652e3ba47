"""Home, corpora, jobs and operations as people meet them: at two widths, by keyboard, live and without script."""

from playwright.sync_api import expect

from portal.challenges.models import Corpus
from portal.jobs import services
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from tests.portal.factories import make_corpus, make_job, make_organizer, make_problem, make_system, write_manifest


def test_visitor_pages_pass_the_check(page, check_page):
    page.goto("/")
    assert page.title() == "Voice anonymisation, measured and heard · VoicePrivacy Portal"
    check_page(page, "home-visitor")
    page.goto("/log-in/")
    check_page(page, "log-in")


def test_home_of_an_organizer_passes_the_check(organizer_page, check_page):
    make_system(make_corpus("made", is_synthetic=True))
    make_corpus("lists", with_audio=False)
    make_job("failed", title="Import of the corpus broken", failure="The corpus was not imported.")
    make_job("running", stage="Examining audio", done=3, total=8)
    organizer_page.goto("/")
    expect(organizer_page.locator("h2")).to_have_text(
        ["Next", "The steps of a challenge", "Jobs under way", "Systems", "Corpora"]
    )
    expect(organizer_page.locator(".ribbon")).to_have_count(2)
    check_page(organizer_page, "home-organizer")


def test_menu_is_one_row_on_a_phone_and_opens_by_keyboard(organizer_page):
    page = organizer_page
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto("/jobs/")
    menu = page.get_by_role("navigation", name="Main")
    assert page.locator(".masthead").bounding_box()["height"] <= 60
    expect(menu.get_by_role("link")).to_have_count(0)
    page.get_by_role("button", name="Menu").press("Enter")
    names = ["Editions", "Corpora", "Systems", "Listening tests", "Jobs", "Documentation"]
    expect(menu.get_by_role("link")).to_have_text(names)
    page.keyboard.press("Escape")
    expect(menu.get_by_role("link")).to_have_count(0)


CORPUS_PAGES = {
    "corpora": "/corpora/",
    "corpus": "/corpora/tones/",
    "speakers": "/corpora/tones/speakers/",
    "utterances": "/corpora/tones/utterances/?text=sentence&gender=f",
}


def test_corpus_pages_pass_the_check_and_say_synthetic(organizer_page, check_page):
    corpus = make_corpus(speakers=4, is_synthetic=True, licence="CC0-1.0")
    system = make_system(corpus)
    for name, address in CORPUS_PAGES.items():
        organizer_page.goto(address)
        expect(organizer_page.locator(".ribbon")).to_have_text("synthetic speech")
        check_page(organizer_page, name)
    organizer_page.goto("/corpora/tones/utterances/tones-s0-000/")
    organizer_page.locator(".player audio").wait_for()
    expect(organizer_page.locator(".ribbon")).to_have_count(1)
    check_page(organizer_page, "utterance")
    file = system.submissions.get().files.get(utterance__name="tones-s0-000")
    link = organizer_page.get_by_role("link", name="Compare with the original")
    expect(link).to_have_attribute("href", f"/systems/b2-tones/files/{file.pk}/")


def test_job_pages_pass_the_check_as_they_run_and_end(organizer_page, check_page):
    running = make_job("running", stage="Examining audio", done=3, total=8)
    problems = [make_problem(file=f"{number}.wav") for number in range(60)] + [make_problem("short", "warning")]
    failed = make_job("failed", failure="The corpus was not imported.", failure_actor="organizer", problems=problems)
    done = make_job("succeeded", result={"corpus": "tones", "gained": {"speakers": 2, "audio_files": 8}})
    for job in (running, failed, done):
        job.events.create(attempt=1, text="Started, attempt 1.")
        organizer_page.goto(job.get_absolute_url())
        check_page(organizer_page, f"job-{job.state}")
    organizer_page.goto("/jobs/")
    check_page(organizer_page, "jobs")


def test_keyboard_alone_logs_in_and_imports_a_corpus(page, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    organizer = make_organizer(password="quiet river stone")
    folder = write_manifest(tmp_path / "speech")
    keys = page.keyboard

    page.goto("/corpora/import/")
    _tab_to(page, "E-mail address")
    keys.type(organizer.email)
    keys.press("Tab")
    keys.type("quiet river stone")
    keys.press("Enter")
    page.get_by_role("heading", name="Import a corpus").wait_for()
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    keys.press("Enter")
    _tab_to(page, "Folder on the server (optional)")
    keys.type(str(folder))
    keys.press("Tab")
    keys.type("tones")
    keys.press("Enter")
    page.get_by_role("heading", name="Import of the corpus tones").wait_for()

    execute(Job.objects.get().pk)
    page.get_by_role("heading", name="Result").wait_for()
    _tab_to(page, "tones")
    keys.press("Enter")
    page.get_by_role("heading", name="Data sets").wait_for()
    assert Corpus.objects.get().utterances.exclude(audio="").count() == 8


def _tab_to(page, name):
    """Press Tab until the field or link of this name has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "() => { const e = document.activeElement; return (e.labels?.[0] ?? e).textContent.trim(); }"
        )
        if " ".join(focused.split()) == name:
            return
    raise AssertionError(f"Tab never came to {name}")


def _status_requests(page):
    requests = []
    page.on("request", lambda request: request.url.endswith("/status") and requests.append(request.url))
    return requests


def test_job_page_follows_the_job_while_it_is_seen_and_stops_asking_when_it_ends(organizer_page):
    """The clock of the page leaps over the time between two looks."""
    page = organizer_page
    page.clock.install()
    user = make_organizer()
    job = services.create_job(kind="import-corpus", title="Import of tones", parameters={}, by=user, run_here=True)
    requests = _status_requests(page)
    page.add_init_script("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.goto(job.get_absolute_url())
    expect(page.get_by_role("button", name="Cancel the job")).to_be_visible()
    _leap(page)
    assert requests == []

    page.evaluate("Object.defineProperty(document, 'hidden', { value: false })")
    claimed = services.claim_job(job.pk)
    services.report_progress(claimed, stage="Examining audio", done=3, total=8)
    _leap(page)
    expect(page.get_by_text("3 of 8")).to_be_visible()
    expect(page.locator("progress")).to_have_attribute("value", "37")

    services.finish_job(claimed, JobState.SUCCEEDED, result={"utterances": 8})
    _leap(page)
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the job")).to_have_count(0)
    expect(page.locator("#announcer")).to_have_text("Job succeeded")
    asked = len(requests)
    _leap(page)
    assert len(requests) == asked


def _leap(page):
    """Past the next look, which may have been asked for a moment ago; what follows from it is under way."""
    for _ in range(2):
        page.clock.fast_forward(2100)
        page.wait_for_timeout(100)


def test_pages_work_without_javascript(new_page):
    make_corpus(speakers=2)
    page = new_page(make_organizer(), java_script_enabled=False)
    page.goto("/corpora/tones/utterances/")
    page.get_by_label("Gender").select_option("f")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    page.get_by_role("link", name="tones-s0-000").click()
    expect(page.locator("audio[controls]")).to_have_count(1)

    job = make_job("running", stage="Examining audio", done=3, total=8)
    page.goto(job.get_absolute_url())
    Job.objects.filter(pk=job.pk).update(done=7)
    page.get_by_role("link", name="Look again").click()
    expect(page.get_by_text("7 of 8")).to_be_visible()
    page.get_by_role("button", name="Cancel the job").click()
    assert Job.objects.get().cancel_requested_at is None  # a page asks first
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_text("Being cancelled: it stops").wait_for()
    assert Job.objects.get().cancel_requested_at is not None
