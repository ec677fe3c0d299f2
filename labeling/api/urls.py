"""Every address of the API, version 1. All of them end in a slash, but those of files."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularJSONAPIView

from labeling.api import (
    adjudications,
    budgets,
    comparisons,
    curricula,
    exports,
    imports,
    people,
    policy_models,
    pools,
    root,
    rounds,
    runs,
    tokens,
    variance,
    work,
)
from labeling.api.errors import NoSuchAddress

pool_urls = [
    path("", pools.PoolDetail.as_view(), name="api-pool"),
    path("questions/", pools.Questions.as_view(), name="api-questions"),
    path("guidelines/", pools.Guidelines.as_view(), name="api-guidelines"),
    path("events/", pools.Events.as_view(), name="api-events"),
    path("members/", people.Members.as_view(), name="api-members"),
    path("members/remove/", people.MemberRemove.as_view(), name="api-member-remove"),
    path("invitations/", people.Invitations.as_view(), name="api-invitations"),
    path("imports/", imports.Imports.as_view(), name="api-imports"),
    path("votes/", imports.Votes.as_view(), name="api-votes"),
    path("picks/", imports.Picks.as_view(), name="api-picks"),
    path("recorded-votes/", runs.RecordedVotesList.as_view(), name="api-recorded-votes"),
    path("budgets/", budgets.Budgets.as_view(), name="api-budgets"),
    path("runs/", runs.Runs.as_view(), name="api-runs"),
    path("comparisons/", comparisons.Comparisons.as_view(), name="api-comparisons"),
    path("rounds/", rounds.Rounds.as_view(), name="api-rounds"),
    path("exports/", exports.Exports.as_view(), name="api-exports"),
    path("variance/", variance.PoolVariance.as_view(), name="api-variance"),
    path("curricula/", curricula.Curricula.as_view(), name="api-curricula"),
]

run_urls = [
    path("", runs.RunDetail.as_view(), name="api-run"),
    path("picks/", runs.RunPicks.as_view(), name="api-run-picks"),
    path("scores/", runs.RunScores.as_view(), name="api-run-scores"),
    path("report/", runs.RunReport.as_view(), name="api-run-report"),
    path("cancel/", runs.RunCancel.as_view(), name="api-run-cancel"),
    path("retry/", runs.RunRetry.as_view(), name="api-run-retry"),
    path("rounds/", rounds.RunRounds.as_view(), name="api-run-rounds"),
    path("comparisons/", comparisons.RunComparisons.as_view(), name="api-run-comparisons"),
]

round_urls = [
    path("", rounds.RoundDetail.as_view(), name="api-round"),
    path("progress/", rounds.RoundProgressDetail.as_view(), name="api-round-progress"),
    path("pause/", rounds.RoundPause.as_view(), name="api-round-pause"),
    path("resume/", rounds.RoundResume.as_view(), name="api-round-resume"),
    path("close/", rounds.RoundClose.as_view(), name="api-round-close"),
    path("claim/", work.RoundClaim.as_view(), name="api-claim"),
    path("answers/", work.RecentAnswers.as_view(), name="api-own-answers"),
    path("claim-adjudication/", adjudications.AdjudicationClaim.as_view(), name="api-claim-adjudication"),
]

slot_urls = [
    path("", work.SlotDetail.as_view(), name="api-slot"),
    path("draft/", work.SlotDraft.as_view(), name="api-slot-draft"),
    path("read-as/", work.SlotReadAs.as_view(), name="api-slot-read-as"),
    path("submit/", work.SlotSubmit.as_view(), name="api-slot-submit"),
    path("unanswerable/", work.SlotUnanswerable.as_view(), name="api-slot-unanswerable"),
    path("revise/", work.SlotRevise.as_view(), name="api-slot-revise"),
    path("undo/", work.SlotUndo.as_view(), name="api-slot-undo"),
    path("skip/", work.SlotSkip.as_view(), name="api-slot-skip"),
    path("release/", work.SlotRelease.as_view(), name="api-slot-release"),
    path("extend/", work.SlotExtend.as_view(), name="api-slot-extend"),
]

urlpatterns = [
    path("", root.Root.as_view(), name="api-root"),
    path("schema/", SpectacularJSONAPIView.as_view(), name="api-schema"),
    path("pools/", pools.Pools.as_view(), name="api-pools"),
    path("pools/<slug:pool_slug>/", include(pool_urls)),
    path("invitations/<int:invitation_id>/revoke/", people.InvitationRevoke.as_view(), name="api-invitation-revoke"),
    path("imports/<uuid:import_id>/", imports.ImportDetail.as_view(), name="api-import"),
    path("imports/<uuid:import_id>/map/", imports.ImportMap.as_view(), name="api-import-map"),
    path("imports/<uuid:import_id>/commit/", imports.ImportCommit.as_view(), name="api-import-commit"),
    path("imports/<uuid:import_id>/discard/", imports.ImportDiscard.as_view(), name="api-import-discard"),
    path("calibration-sets/", imports.CalibrationSets.as_view(), name="api-calibration-sets"),
    path("calibration-sets/imports/", imports.CalibrationImports.as_view(), name="api-calibration-imports"),
    path("calibration-sets/<int:set_id>/variance/", variance.SetVariance.as_view(), name="api-set-variance"),
    path("models/", policy_models.PolicyModels.as_view(), name="api-models"),
    path("strategies/", runs.Strategies.as_view(), name="api-strategies"),
    path("budgets/<int:budget_id>/", budgets.BudgetDetail.as_view(), name="api-budget"),
    path("budgets/<int:budget_id>/units/", budgets.BudgetUnits.as_view(), name="api-budget-units"),
    path("runs/<int:run_id>/", include(run_urls)),
    path("comparisons/<int:comparison_id>/", comparisons.ComparisonDetail.as_view(), name="api-comparison"),
    path(
        "comparisons/<int:comparison_id>/result/",
        comparisons.ComparisonResult.as_view(),
        name="api-comparison-result",
    ),
    path(
        "comparisons/<int:comparison_id>/cancel/",
        comparisons.ComparisonCancel.as_view(),
        name="api-comparison-cancel",
    ),
    path("comparisons/<int:comparison_id>/retry/", comparisons.ComparisonRetry.as_view(), name="api-comparison-retry"),
    path("rounds/<int:round_id>/", include(round_urls)),
    path("work/", work.Work.as_view(), name="api-work"),
    path("slots/<int:slot_id>/", include(slot_urls)),
    path("adjudications/<int:slot_id>/", adjudications.AdjudicationDetail.as_view(), name="api-adjudication"),
    path(
        "adjudications/<int:slot_id>/decide/",
        adjudications.AdjudicationDecide.as_view(),
        name="api-adjudication-decide",
    ),
    path("exports/<int:export_id>/", exports.ExportDetail.as_view(), name="api-export"),
    path("exports/<int:export_id>/files/<path:filename>", exports.ExportFile.as_view(), name="api-export-file"),
    path("tokens/", tokens.Tokens.as_view(), name="api-tokens"),
    path("tokens/<int:token_id>/revoke/", tokens.TokenRevoke.as_view(), name="api-token-revoke"),
    path("curricula/<int:curriculum_id>/", curricula.CurriculumDetail.as_view(), name="api-curriculum"),
    path("curricula/<int:curriculum_id>/propose/", curricula.Propose.as_view(), name="api-curriculum-propose"),
    path("curricula/<int:curriculum_id>/refill/", curricula.Refill.as_view(), name="api-curriculum-refill"),
    path("curricula/<int:curriculum_id>/rewards/", curricula.Rewards.as_view(), name="api-curriculum-rewards"),
    re_path(r"^", NoSuchAddress.as_view(), name="api-no-such-address"),
]
