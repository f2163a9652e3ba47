import pytest
from tests.anonymization.app.test_network_trainings import make_material

pytestmark = pytest.mark.django_db(transaction=True)


def test_shots(organizer_page, live_server):
    data_set = make_material()
    page = organizer_page
    errors = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    for name, address in (("methods", "/anonymizers/"), ("new", f"/anonymizers/trainings/new/{data_set.corpus.name}/")):
        for width in (1280, 360):
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(live_server.url + address)
                page.screenshot(path=f"/tmp/shots/x-{name}-{width}-{scheme}.png", full_page=True)
                print(name, width, page.title(), page.evaluate("document.documentElement.scrollWidth"), page.evaluate("document.documentElement.scrollHeight"))
    print(errors)
