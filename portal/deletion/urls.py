from django.urls import path

from portal.deletion import views

app_name = "deletion"
urlpatterns = [
    path("", views.index, name="index"),
    path("demo/delete/", views.delete_demo, name="delete-demo"),
    path("receipts/<int:pk>/", views.receipt, name="receipt"),
    path("<slug:kind>/<int:pk>/", views.manage, name="thing"),
    path("<slug:kind>/<int:pk>/archive/", views.archive, name="archive"),
    path("<slug:kind>/<int:pk>/restore/", views.restore, name="restore"),
]
