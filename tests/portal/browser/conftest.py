"""What a journey through a served portal needs: `portal`, which takes corpora from the folder of the fixture `imports`
of each journey, `open_page` and `look`.
"""

import pytest

from tests.browsing import PATIENCE_S, watch_page
from tests.portal.browser.journey import ServedPortal


@pytest.fixture
def portal(transactional_db, tmp_path, imports):
    served = ServedPortal(tmp_path, imports)
    yield served
    served.end()


@pytest.fixture
def open_page(browser, portal, problems):
    """Opens a page of somebody of their own: `open_page(width=1280)`."""
    contexts = []

    def open_page(width=1280):
        context = browser.new_context(base_url=portal.url, viewport={"width": width, "height": 800})
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE_S)
        page = context.new_page()
        watch_page(page, problems[page], portal.url)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def look(request, check_page):
    """Check a page at the width of its journey, as it is; axe sees each of them in the tests of its feature."""
    journey = request.module.__name__.rpartition("test_")[2].replace("_", "-")

    def look(page, name):
        check_page(page, f"{journey}-{name}", widths=[page.viewport_size["width"]], schemes=["light"], with_axe=False)

    return look
