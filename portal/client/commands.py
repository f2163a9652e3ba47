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
    "Listening tests": {
        "study new": ("portal.client.study:make_study", "Make a test of recordings, or of an edition's systems."),
    },
}
GROUPS = {"study": "Make listening tests."}
# Packages of ours, of which the commands are made.
OURS = frozenset({"common", "speech", "portal", "evaluation", "anonymization", "listening"})
