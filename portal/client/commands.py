"""The commands of ``vp`` by name: where each is, and what it does in a line."""

# Part of the help: name of a command: module and function, what it does.
COMMANDS = {
    "For teams": {
        "login": ("portal.client.login:log_in", "Save the address of a portal and your access token."),
        "data": ("portal.client.data:fetch_data", "Fetch speech and lists of an edition, check and unpack them."),
        "run": ("portal.client.run:anonymize_edition", "Anonymise the speech of an edition, as it asks for it."),
        "pack": ("portal.client.pack:pack", "Make the archive that the edition requires, and check it."),
        "verify": ("portal.client.verify:verify_archive", "Check an archive before it is sent: every problem at once."),
        "submit": ("portal.client.submit:submit", "Send an archive, and read the report on it."),
        "status": ("portal.client.status:show_status", "Your submissions, or one of them: problems, progress."),
        "results": ("portal.client.results:show_results", "The numbers of a system, next to the reported ones."),
    },
    "Anonymising": {
        "anonymize": ("anonymization.cli.run:anonymize", "Anonymise a folder or Kaldi data directories."),
        "methods": ("anonymization.cli.listing:list_methods", "The anonymisers, their parameters and options."),
        "voices": ("anonymization.cli.voices:voices", "Voices of all speakers as a table; or check such a file."),
        "train-network": ("anonymization.cli.train:train_network", "Train a network of an anonymiser."),
    },
    "Measuring": {
        "score": ("evaluation.cli.score:score", "Every detection metric of Kaldi score files, with a DET figure."),
        "pitch": ("evaluation.cli.pitch:pitch", "Pitch correlation of original and anonymised speech."),
        "recognize": ("evaluation.cli.recognize:recognize", "Transcribe speech, and count word errors with intervals."),
        "retrain-recognizer": (
            "evaluation.cli.retrain_recognizer:retrain_recognizer",
            "Phone errors by recognisers trained on original and on anonymised speech.",
        ),
        "naturalness": ("evaluation.cli.naturalness:naturalness", "Naturalness of speech as a network predicts it."),
        "attack": ("evaluation.cli.attack:attack", "Attack anonymised speech: vectors, scores, EERs with intervals."),
        "train-attacker": (
            "evaluation.cli.train_attacker:train_attacker",
            "Train a speaker recogniser on anonymised speech, as a semi-informed attacker.",
        ),
        "verify-results": (
            "evaluation.cli.verify:verify_results",
            "Check result files: problems, averages, conditions.",
        ),
        "compare": ("evaluation.cli.compare:compare", "Two results side by side with their differences."),
        "metrics": ("evaluation.cli.listing:list_metrics", "Metrics, editions and estimators."),
        "models": ("evaluation.cli.models:models", "Model files: which are present; fetch the others."),
    },
    "Listening tests": {
        "study new": ("portal.client.study:make_study", "Make a test of recordings, or of an edition's systems."),
        "study plan": (
            "listening.design.commands:plan_design",
            "Make a design of a CSV of trials, and its certificate.",
        ),
        "study check": ("listening.design.commands:check_design", "Check a saved design again."),
        "study analyse": ("listening.analysis.cli:analyse_answers", "Analyse a CSV of answers, or a zip of inputs."),
        "study reproduce": (
            "listening.analysis.cli:reproduce_analysis",
            "Analyse a bundle again, compare every table.",
        ),
        "study describe": (
            "listening.analysis.cli:describe_tables_and_columns",
            "Explain the columns of files and tables.",
        ),
    },
}
GROUPS = {"study": "Make, plan and analyse listening tests."}
# Packages of ours, of which the commands are made.
OURS = frozenset({"common", "speech", "portal", "evaluation", "anonymization", "listening"})
