"""Calibration sets. Their answers are shown to nobody, managers included."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from labeling import policies
from labeling.queries.shared import calibration_sets_for
from labeling.views.respond import HtmxHttpRequest


@require_safe
def calibration_sets(request: HtmxHttpRequest) -> HttpResponse:
    policies.check_can_manage_shared(request.user)
    return render(request, "labeling/calibration_sets.html", {"sets": calibration_sets_for(request.user)})
