"""Every address of the API, version 1."""

from django.urls import path

from labeling.api import curricula

urlpatterns = [
    path("curricula/<int:curriculum_id>/", curricula.CurriculumDetail.as_view(), name="api-curriculum"),
    path("curricula/<int:curriculum_id>/propose/", curricula.Propose.as_view(), name="api-curriculum-propose"),
    path("curricula/<int:curriculum_id>/refill/", curricula.Refill.as_view(), name="api-curriculum-refill"),
    path("curricula/<int:curriculum_id>/rewards/", curricula.Rewards.as_view(), name="api-curriculum-rewards"),
]
