// The questions of a trial for an organizer to look at: the form that evaluators get, connected with nothing.

document.getElementById("form").append(document.getElementById("form-of-trial").content.cloneNode(true));
