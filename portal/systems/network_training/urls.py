from django.urls import path

from portal.systems.network_training import views

app_name = "network-trainings"
urlpatterns = [
    path("", views.training_list, name="list"),
    path("new/<slug:corpus>/", views.new_training, name="new"),
    path("<int:training>/", views.training_detail, name="detail"),
    path("<int:training>/live", views.training_live, name="live"),
    path("<int:training>/cancel", views.cancel, name="cancel"),
    path("<int:training>/continue", views.go_on, name="continue"),
    path("<int:training>/<int:seed>/card.json", views.card, name="card"),
    path("<int:training>/<int:seed>/losses.csv", views.losses, name="losses"),
    path("<int:training>/<int:seed>/network.zip", views.download_weights, name="weights"),
]
