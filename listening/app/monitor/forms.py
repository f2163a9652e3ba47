"""The form of a rule that leaves sessions out."""

from __future__ import annotations

from typing import Any

from django import forms

from listening.app.models import ExclusionRule
from listening.app.monitor.services import create_rule
from listening.app.studies.forms import or_errors


class RuleForm(forms.ModelForm):
    """The reason of a rule whose effect was shown; what it leaves out, a flag or a session, stands in the address."""

    class Meta:
        model = ExclusionRule
        fields = ["reason", "offers_block_again"]
        labels = {"offers_block_again": "Offer the blocks of these sessions again"}
        widgets = {"reason": forms.Textarea(attrs={"rows": 3})}
        help_texts = {
            "reason": "It is shown with every result that depends on this, and in the export.",
            "offers_block_again": "Another evaluator then hears the whole block; while the study is closed, nobody.",
        }

    def make(self, by: Any) -> ExclusionRule | None:
        """Return the rule that is made; None with what stands in the way as an error of the form."""
        rule = self.instance
        what = {"flag": rule.flag, "session": rule.session}
        return or_errors(self, create_rule, study=rule.study, by=by, **what, **self.cleaned_data)
