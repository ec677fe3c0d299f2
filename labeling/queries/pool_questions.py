"""A pool's questions and the imports that brought them, for lists."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from labeling.models import GoldAnswer, ImportBatch, Pick, Pool, Question


def questions_of(pool: Pool, *, search: str = "") -> QuerySet[Question]:
    """The questions in the order they came, with ``is_picked`` and ``is_labeled``; ``search`` is text or an id."""
    questions = Question.objects.in_pool(pool).order_by("id")
    if search:
        questions = questions.filter(Q(text__icontains=search) | Q(uid=search))
    return questions.annotate(
        is_picked=Exists(Pick.objects.filter(question=OuterRef("pk"))),
        is_labeled=Exists(GoldAnswer.objects.filter(question=OuterRef("pk"))),
    )


def imports_of(pool: Pool) -> QuerySet[ImportBatch]:
    """The files brought into the pool, newest first, without their rows."""
    return ImportBatch.objects.filter(pool=pool).select_related("created_by").defer("rejected", "sample", "warnings")
