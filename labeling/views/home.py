"""The start page: what waits for the person, whatever their roles are."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from labeling import policies
from labeling.models import Role
from labeling.queries import attention
from labeling.queries.pools import pools_for
from labeling.queries.queue import work_for
from labeling.views.respond import HtmxHttpRequest


@require_safe
def home(request: HtmxHttpRequest) -> HttpResponse:
    user = request.user
    pools = pools_for(user=user)
    context = {
        "work": work_for(user=user),
        "pools": pools,
        "can_create_pool": policies.can_create_pool(user),
        "manages": any(Role.MANAGER in row.roles for row in pools) or (user.is_superuser and pools),
        "matters": attention.matters(user),
        "runs_under_way": attention.runs_under_way(user),
        "rounds": attention.unfinished_rounds(user),
    }
    return render(request, "labeling/home.html", context)
