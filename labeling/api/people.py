"""The people of a pool, and invitations to it."""

from __future__ import annotations

from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import people as actions
from labeling.api.access import managed, managed_pool
from labeling.api.endpoint import Endpoint
from labeling.api.schema import operation
from labeling.models import Invitation, Role, User
from labeling.queries.people import members_of, open_invitations


class MemberSerializer(Serializer):
    username = serializers.CharField(source="user.username")
    roles = serializers.ListField(child=serializers.ChoiceField(Role.choices))
    n_answers = serializers.IntegerField()
    last_answer_at = serializers.DateTimeField(allow_null=True)


class MemberRoleSerializer(Serializer):
    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(Role.choices)

    def validate_username(self, given: str) -> User:
        user = User.objects.filter(username=given, memberships__pool=self.context["pool"]).distinct().first()
        if user is None:
            raise serializers.ValidationError(f"Nobody named {given} is in the pool.", code="does_not_exist")
        return user


class NewInvitationSerializer(Serializer):
    role = serializers.ChoiceField(Role.choices)
    note = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)


class InvitationSerializer(Serializer):
    id = serializers.IntegerField()
    role = serializers.ChoiceField(Role.choices)
    note = serializers.CharField()
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewInvitationLinkSerializer(InvitationSerializer):
    link = serializers.CharField(allow_null=True, help_text="Shown this once; null where the request is sent again.")


class Members(Endpoint):
    tag = "people"

    @operation(pages=MemberSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the people of a pool and how much each has answered."""
        return self.paged(members_of(pool=managed_pool(request, pool_slug)), MemberSerializer)


class MemberRemove(Endpoint):
    tag = "people"
    is_repeatable = True

    @operation(takes=MemberRoleSerializer, gives=MemberSerializer(many=True))
    def post(self, request: Request, pool_slug: str) -> Response:
        """Take a role away from somebody; what they have answered stays."""
        pool = managed_pool(request, pool_slug)
        asked = self.asked(MemberRoleSerializer, pool=pool)
        actions.remove_member(pool=pool, user=asked["username"], role=asked["role"], by=request.user)
        return Response(MemberSerializer(members_of(pool=pool), many=True).data)


class Invitations(Endpoint):
    tag = "people"
    shown_once = ["link"]

    @operation(pages=InvitationSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the invitations that can still be accepted."""
        return self.paged(open_invitations(pool=managed_pool(request, pool_slug)), InvitationSerializer)

    @operation(takes=NewInvitationSerializer, gives=NewInvitationLinkSerializer, status=201)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Invite one person; the link is in this answer and nowhere else."""
        pool = managed_pool(request, pool_slug)
        invitation, token = actions.create_invitation(pool=pool, by=request.user, **self.asked(NewInvitationSerializer))
        link = request.build_absolute_uri(reverse("join", args=[token]))
        return Response({**InvitationSerializer(invitation).data, "link": link}, status=201)


class InvitationRevoke(Endpoint):
    tag = "people"
    is_repeatable = True

    @operation(gives=InvitationSerializer)
    def post(self, request: Request, invitation_id: int) -> Response:
        """Withdraw an invitation that nobody has accepted."""
        invitation = managed(request, Invitation.objects.all(), invitation_id, pool="pool")
        return Response(InvitationSerializer(actions.revoke_invitation(invitation=invitation, by=request.user)).data)
