"""The start page: what waits for the person, whatever their roles are."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from labeling import policies
from labeling.queries import attention
from labeling.queries.pools import pools_for
from labeling.queries.queue import work_for
from labeling.views.respond import HtmxHttpRequest


@require_safe
def home(request: HtmxHttpRequest) -> HttpResponse:
    user = request.user
    context = {
        "work": work_for(user=user),
        "pools": pools_for(user=user),
        "can_create_pool": policies.can_create_pool(user),
        "runs_under_way": attention.runs_under_way(user),
        "failed_runs": attention.failed_runs(user),
        "runs_without_round": attention.runs_without_round(user),
        "rounds": attention.unfinished_rounds(user),
    }
    return render(request, "labeling/home.html", context)
