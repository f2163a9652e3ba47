from django.urls import path

from portal.removal import views

app_name = "removal"
urlpatterns = [
    path("", views.index, name="index"),
    path("demo/remove/", views.remove_demo, name="remove-demo"),
    path("receipts/<int:pk>/", views.receipt, name="receipt"),
    path("<slug:kind>/<slug:key>/", views.manage, name="thing"),
    path("<slug:kind>/<slug:key>/archive/", views.archive, name="archive"),
    path("<slug:kind>/<slug:key>/restore/", views.restore, name="restore"),
    path("<slug:kind>/<slug:key>/delete/", views.delete, name="delete"),
]
