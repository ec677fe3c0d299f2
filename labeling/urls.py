"""Every address of the application. Pages first, then the parts of pages that htmx asks for."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.decorators.cache import cache_control
from django.views.i18n import JavaScriptCatalog

from labeling.views import (
    adjudicate,
    annotate,
    answered,
    calibration,
    exports,
    home,
    imports,
    meaning,
    people,
    policy_models,
    pools,
    practice,
    run_details,
)
from labeling.views import comparisons as comparison_views
from labeling.views import curricula as curriculum_views
from labeling.views import reveal as reveal_views
from labeling.views import rounds as round_views
from labeling.views import runs as run_views
from labeling.views import tokens as token_views
from labeling.views import variance as variance_views

pool_urls = [
    path("", pools.pool, name="pool"),
    path("questions/", pools.questions, name="pool-questions"),
    path("guideline/", pools.guideline, name="pool-guideline"),
    path("people/", people.pool_people, name="pool-people"),
    path("people/invite/", people.invite, name="invitation-new"),
    path("people/remove/", people.member_remove, name="member-remove"),
    path("import/", imports.pool_import, name="pool-import"),
    path("votes/", imports.votes_import, name="votes-import"),
    path("runs/", run_views.pool_runs, name="pool-runs"),
    path("runs/new/", run_views.run_new, name="run-new"),
    path("runs/compare/", run_details.run_pair, name="run-pair"),
    path("comparisons/", comparison_views.pool_comparisons, name="pool-comparisons"),
    path("comparisons/new/", comparison_views.comparison_new, name="comparison-new"),
    path("budgets/new/", round_views.budget_new, name="budget-new"),
    path("variance/", variance_views.pool_variance, name="pool-variance"),
    path("curricula/", curriculum_views.pool_curricula, name="pool-curricula"),
    path("curricula/new/", curriculum_views.curriculum_new, name="curriculum-new"),
    path("export/", exports.pool_export, name="pool-export"),
    path("export/new/", exports.export_new, name="export-new"),
]

catalog = login_not_required(JavaScriptCatalog.as_view(packages=["labeling"]))  # the login page has scripts too

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", people.login, name="login"),
    path("logout/", people.logout, name="logout"),
    path("join/<str:token>/", people.join, name="join"),
    path("invitations/<int:invitation_id>/revoke/", people.invitation_revoke, name="invitation-revoke"),
    path("pools/new/", pools.pool_new, name="pool-new"),
    path("pools/<slug:pool_slug>/", include(pool_urls)),
    path("imports/<uuid:import_id>/", imports.preview, name="import-preview"),
    path("imports/<uuid:import_id>/commit/", imports.commit, name="import-commit"),
    path("imports/<uuid:import_id>/discard/", imports.discard, name="import-discard"),
    path("models/", policy_models.models, name="models"),
    path("models/new/", policy_models.model_new, name="model-new"),
    path("calibration-sets/", calibration.calibration_sets, name="calibration-sets"),
    path("calibration-sets/import/", imports.calibration_import, name="calibration-import"),
    path("calibration-sets/<int:set_id>/variance/", variance_views.set_variance, name="set-variance"),
    path("budgets/<int:budget_id>/", round_views.budget_page, name="budget"),
    path("budgets/<int:budget_id>/add/", round_views.budget_add, name="budget-add"),
    path("runs/<int:run_id>/", run_views.run, name="run"),
    path("runs/<int:run_id>/progress/", run_views.run_progress, name="run-progress"),
    path("runs/<int:run_id>/cancel/", run_views.run_cancel, name="run-cancel"),
    path("runs/<int:run_id>/retry/", run_views.run_retry, name="run-retry"),
    path("runs/<int:run_id>/complete/", run_views.run_complete, name="run-complete"),
    path("runs/<int:run_id>/scores.csv", run_details.run_scores, name="run-scores"),
    path("runs/<int:run_id>/questions/<int:question_id>/", run_details.run_question, name="run-question"),
    path("runs/<int:run_id>/round/new/", round_views.round_new, name="round-new"),
    path("comparisons/<int:comparison_id>/", comparison_views.comparison, name="comparison"),
    path("comparisons/<int:comparison_id>/progress/", comparison_views.comparison_progress, name="comparison-progress"),
    path("comparisons/<int:comparison_id>/cancel/", comparison_views.comparison_cancel, name="comparison-cancel"),
    path("comparisons/<int:comparison_id>/retry/", comparison_views.comparison_retry, name="comparison-retry"),
    path("comparisons/<int:comparison_id>/comparison.json", comparison_views.comparison_json, name="comparison-json"),
    path("rounds/<int:round_id>/", round_views.round_page, name="round"),
    path("rounds/<int:round_id>/status/", round_views.round_status, name="round-status"),
    path("rounds/<int:round_id>/guideline/", answered.round_guideline, name="round-guideline"),
    path("rounds/<int:round_id>/annotate/", annotate.claim, name="annotate"),
    path("rounds/<int:round_id>/practice/", practice.practice, name="practice"),
    path("practice/<int:answer_id>/", practice.practice_answer, name="practice-answer"),
    path("rounds/<int:round_id>/questions/<int:question_id>/", meaning.question_answers, name="question-answers"),
    path("rounds/<int:round_id>/questions/<int:question_id>/meaning/", meaning.meaning, name="answers-meaning"),
    path("rounds/<int:round_id>/ask-again/", meaning.answer_buy, name="answer-buy"),
    path("rounds/<int:round_id>/adjudicate/", adjudicate.claim, name="adjudicate"),
    path("slots/<int:slot_id>/", annotate.slot, name="slot"),
    path("slots/<int:slot_id>/draft/", annotate.draft, name="slot-draft"),
    path("slots/<int:slot_id>/read-as/", annotate.read_as, name="slot-read-as"),
    path("slots/<int:slot_id>/submit/", annotate.submit, name="slot-submit"),
    path("slots/<int:slot_id>/unanswerable/", annotate.unanswerable, name="slot-unanswerable"),
    path("slots/<int:slot_id>/skip/", annotate.skip, name="slot-skip"),
    path("slots/<int:slot_id>/undo/", answered.undo, name="slot-undo"),
    path("slots/<int:slot_id>/revise/", answered.revise, name="slot-revise"),
    path("slots/<int:slot_id>/flag/", answered.flag, name="slot-flag"),
    path("slots/<int:slot_id>/guideline/", answered.slot_guideline, name="slot-guideline"),
    path("slots/<int:slot_id>/reveal/", reveal_views.reveal, name="slot-reveal"),
    path("adjudications/<int:slot_id>/", adjudicate.adjudication, name="adjudication"),
    path("curricula/<int:curriculum_id>/", curriculum_views.curriculum, name="curriculum"),
    path("tokens/", token_views.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", token_views.revoke, name="token-revoke"),
    path("exports/<int:export_id>/<path:filename>", exports.export_file, name="export-file"),
    path("words.js", cache_control(max_age=3600)(catalog), name="javascript-catalog"),
    path("api/v1/", include("labeling.api.urls")),
    path("admin/", admin.site.urls),
]

handler500 = "labeling.api.errors.internal_error"
