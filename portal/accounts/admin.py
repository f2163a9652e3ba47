from typing import Any

import allauth.account.admin
import allauth.mfa.admin  # noqa: F401 - these two register what is replaced below
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.http import HttpRequest

from portal.accounts.models import User
from portal.accounts.services import set_address

admin.site.unregister(EmailAddress)  # follows the address of the account
admin.site.unregister(Authenticator)


class NewUserForm(AdminUserCreationForm):
    class Meta:
        model = User
        fields = ("email", "name")


@admin.register(User)
class UserAdmin(DjangoUserAdmin):
    add_form = NewUserForm
    ordering = ("email",)
    list_display = ("email", "name", "is_organizer", "is_staff", "is_active", "last_login")
    list_filter = ("is_organizer", "is_staff", "is_active")
    search_fields = ("email", "name")
    fieldsets = (
        (None, {"fields": ("email", "name", "password")}),
        ("Roles", {"fields": ("is_active", "is_organizer", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"fields": ("email", "name", "usable_password", "password1", "password2", "is_organizer")}),
    )

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """An operator who sets an address vouches for it."""
        super().save_model(request, obj, form, change)
        if not change or "email" in form.changed_data:
            set_address(obj)


@admin.register(Authenticator)
class SecondFactorAdmin(admin.ModelAdmin):
    """Removed here for somebody who lost their phone and their recovery codes; its secrets are not shown."""

    list_display = ("user", "type", "created_at", "last_used_at")
    search_fields = ("user__email", "user__name")
    fields = readonly_fields = ("user", "type", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False
