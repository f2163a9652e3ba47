"""What templates need to say things well; the wording itself is in `portal.core.labels`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django import template
from django.conf import settings
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from common.memory import format_size
from portal.core import labels
from portal.core.mail import if_mailed, sends_mail
from portal.core.program import describe_program

register = template.Library()

register.filter("time_left", labels.time_left)
register.filter("duration", labels.duration)  # {{ utterance.duration_s|duration }}: 4 min 5 s
register.filter("decimals", labels.decimals)  # {{ value|decimals:metric.decimals }}: as its metric is written
register.filter("as_facts", labels.as_facts)  # {% include "components/facts.html" with facts=job.result|as_facts %}
register.filter("problem_groups", labels.group_stored_problems)
register.filter("severities", labels.count_severities)
register.filter("symbol", labels.symbol)
register.simple_tag(sends_mail)  # {% sends_mail as is_sent %}
register.simple_tag(if_mailed)  # {% if_mailed "You get a mail." %}


@register.filter
def size(count: int) -> str:
    """`{{ upload.size|size }}`: 9.3 MB."""
    return format_size(count).replace(" ", "\u00a0")


@register.filter
def moment(at: datetime | None) -> str:
    """`<time datetime="{{ job.created_at|moment }}">`: for programs, in ISO 8601, to the second; nothing for None."""
    return at.isoformat(timespec="seconds") if at else ""


@register.filter
def unbroken(text: str) -> str:
    """`{{ row.kind|unbroken }}`: words that stay on one line."""
    return text.replace(" ", "\u00a0").replace("-", "-\u2060")


@register.filter
def percents(sentence: str) -> str:
    """`{{ sentence|percents }}`: no number is parted from its sign, as in ≥ 20 %."""
    return sentence.replace(" %", "\u00a0%").replace("≥ ", "≥\u00a0")


@register.filter
def code(text: str) -> SafeString:
    """`{{ field.description|code }}`: words between backquotes as code."""
    return mark_safe(re.sub("`([^`]+)`", r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped before


@register.filter
def words(line: str) -> SafeString:
    """`{{ command|words }}`: each word with a hyphen in a span that does not break after it."""
    made = (
        format_html('<span class="unbroken">{}</span>', one) if "-" in one else escape(one) for one in line.split(" ")
    )
    return mark_safe(" ".join(made))  # noqa: S308 - each word is escaped


@register.inclusion_tag("components/command.html")
def command(words: str, what: str = "") -> dict[str, Any]:
    """`{% command "worker --queues " queue.name %}`: a line for a terminal, by the program of this portal."""
    start = ".venv/bin/python " if settings.PROGRAM == "manage.py" else ""
    return {"command": f"{start}{settings.PROGRAM} {words}{what}"}


@register.inclusion_tag("components/install_vp.html", takes_context=True)
def install_vp(context: template.Context) -> dict[str, Any]:
    """`{% install_vp %}`: the lines that install the program ``vp`` of this portal and log in."""
    place = context["request"].resolver_match
    return describe_program(context["request"]) | {
        "is_its_page": place is not None and place.view_name == "downloads:page"
    }
