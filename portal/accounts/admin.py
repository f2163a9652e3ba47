from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm

from portal.accounts.models import User


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
        (
            None,
            {
                "fields": (
                    "email",
                    "name",
                    "usable_password",
                    "password1",
                    "password2",
                    "is_organizer",
                )
            },
        ),
    )
