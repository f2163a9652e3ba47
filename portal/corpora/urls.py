from django.urls import path

from portal.corpora import views

app_name = "corpora"
urlpatterns = [
    path("", views.corpus_list, name="list"),
    path("import/", views.import_corpus, name="import"),
    path("import/demo/", views.import_demo, name="import-demo"),
    path("<slug:name>/", views.corpus_detail, name="detail"),
    path("<slug:name>/edit/", views.edit, name="edit"),
    path("<slug:name>/share/", views.share, name="share"),
    path("<slug:name>/speakers/", views.speaker_list, name="speakers"),
    path("<slug:name>/utterances/", views.utterance_list, name="utterances"),
    path("<slug:name>/utterances/<str:utterance>/", views.utterance_detail, name="utterance"),
    path("<slug:name>/sets/<slug:data_set>/", views.data_set_detail, name="data-set"),
]
