"""The models that will be trained, and how each is reached."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from labeling import policies
from labeling.actions.policy_models import create_policy_model
from labeling.errors import LabelingError
from labeling.forms import PolicyModelForm
from labeling.queries.shared import policy_models
from labeling.views.respond import HtmxHttpRequest, redirect, say


@require_safe
def models(request: HtmxHttpRequest) -> HttpResponse:
    policies.check_can_manage_shared(request.user)
    return render(request, "labeling/models.html", {"models": policy_models()})


@require_http_methods(["GET", "POST"])
def model_new(request: HtmxHttpRequest) -> HttpResponse:
    policies.check_can_manage_shared(request.user)
    form = PolicyModelForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            model = create_policy_model(by=request.user, **form.cleaned_data)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            say(request, _("%(model)s can be chosen for runs now.") % {"model": model})
            return redirect(request, "models")
    return render(request, "labeling/model_new.html", {"form": form}, status=422 if form.errors else 200)
