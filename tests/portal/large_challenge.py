"""A challenge that has grown: `Challenge` with so many sessions, utterances, systems and jobs more.

Rows are copied by the database itself, for there are hundreds of thousands: each has a row that the factories made.
"""

from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, reset_queries
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluation.app.models import EvaluationRun
from listening.app.models import Flag, Presentation, Study
from portal.challenges.models import Corpus, DataSet, Edition
from portal.client.wheel import build_wheel
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.submissions.models import Submission, Upload
from tests.listening.analysis.examples import made_up_results
from tests.listening.edition_factories import make_draft
from tests.listening.factories import make_session, make_study
from tests.listening.results.analysed import add_analysis
from tests.listening.session_factories import make_finished_session
from tests.portal.api.calls import Challenge
from tests.portal.factories import make_job, make_operator, make_submission, make_team, make_team_system
from tests.portal.measured_runs import make_measured_run
from tests.portal.network_trainings import make_network_training
from tests.portal.objective_runs import make_objective_run, ranked_numbers
from tests.portal.test_nobody_else import kind_of, names_of, patterns

ROLES = ("visitor", "member", "organizer", "operator")
# Files that hold the whole of something, which grow with it, and the pages that count all that is deleted or archived.
WHOLE = {
    "deletion:thing",
    "systems:measures-csv",
    "submissions:diff-csv",
    "studies:export-csv",
    "studies:export-json",
    "studies:export-zip",
    "api:diff",
    "api:expected",
    "api:expected-set",
}
OF_TRANSACTIONS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
STATES = "WHEN 7 THEN 'active' WHEN 8 THEN 'expired' WHEN 9 THEN 'technical'"
# Addresses that are mailed, and whatever is no address.
OF_NOTHING = {"account_confirm_email", "account_reset_password_from_key", "api:nothing"}
ITEM_SETS = 200  # different trials of a study: a session's trials times so many
FOUND = {"holds": True, "task": "naturalness", "length": 40, "of": 52, "median_share": 0.5, "limit": 0.9}
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "


@dataclass(frozen=True)
class Size:
    """How much there is. `files`: those of each system but the first, which has one of every utterance.

    `sets`: data sets of the corpus; the jobs of measures come on top of `jobs`. `trials`: of each session.
    """

    sessions: int = 1000
    utterances: int = 60_000
    systems: int = 40
    jobs: int = 5000
    files: int = 1500
    others: int = 40  # corpora, editions and studies beside
    sets: int = 3
    trials: int = 52


def copy(row, count, source="n", where="TRUE", **changes):
    """Insert copies of a row, one for each row of `source` (default: the numbers `n.i` from 1 to `count`).

    Args:
        changes: what differs, by field, in SQL; `t` is the row itself.
    """
    model = type(row)
    fields = [field for field in model._meta.concrete_fields if not (field.primary_key and field.name not in changes)]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    values = ", ".join(changes.get(field.name, f't."{field.column}"') for field in fields)
    table = model._meta.db_table
    insert = f'INSERT INTO "{table}" ({columns}) '
    with connection.cursor() as cursor:
        cursor.execute(
            f"{NUMBERS.format(count=count)}{insert}SELECT {values} FROM {source} CROSS JOIN {table} t"
            f" WHERE t.id = {row.pk} AND {where}"
        )


def run(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


class LargeChallenge(Challenge):
    """`study` is open with its sessions under way and finished; `close_study` ends and analyses it."""

    def __init__(self, size=Size()):
        super().__init__()
        self.size = size
        self.grow_corpus()
        self.grow_files()
        self.grow_systems()
        self.grow_study()
        self.draft = make_draft(self.edition)
        self.network = make_network_training(self.edition.corpus)
        self.grow_jobs()
        self.add_others()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def grow_corpus(self):
        corpus = self.edition.corpus
        people = list(corpus.speakers.order_by("pk"))
        in_set = DataSet.utterances.through._meta.db_table
        for number in range(corpus.data_sets.count(), self.size.sets):
            more = corpus.data_sets.create(name=f"tones_{number}_trials_{'mf'[number % 2]}", role="trial")
            self.runs.append(make_measured_run(self.system, more))
        sets = list(corpus.data_sets.all())
        heard = [
            (one, speaker)
            for one in sets
            for speaker in people
            if one.role != "trial" or one.name.endswith(f"_{speaker.gender}")
        ]
        first = corpus.utterances.order_by("pk").first()
        for data_set, speaker in heard:
            name = f"'{data_set.name}-{speaker.name}-' || n.i"
            copy(first, self.size.utterances // len(heard), name=name, speaker=str(speaker.pk))
        for data_set in sets:
            run(
                f"INSERT INTO {in_set} (dataset_id, utterance_id) SELECT {data_set.pk}, id FROM challenges_utterance"
                f" WHERE name LIKE '{data_set.name}-%'"
            )

    def grow_files(self):
        """Of the first system a file of every utterance, measured."""
        file = self.submission.files.first()
        for of_set in self.runs:
            copy_files(file, self.submission, of_set.data_set)
            self.copy_measures(of_set)

    def copy_measures(self, run):
        """A measure of each file of the submission and set of a run that has none yet."""
        source = (
            f"(SELECT id FROM submissions_submittedfile WHERE submission_id = {run.submission_id}"
            f" AND data_set_id = {run.data_set_id} AND id NOT IN"
            f" (SELECT file_id FROM evaluation_utterancemeasure WHERE run_id = {run.pk})) f"
        )
        measure = self.runs[0].measures.order_by("pk").first()
        copy(measure, 1, source, run=str(run.pk), file="f.id", pitch_correlation="(f.id % 1000) / 1000.0")

    def grow_systems(self):
        of_system = ranked_numbers(self.edition, eer=20.0, wer=9.0)
        file = self.submission.files.first()
        trials = list(self.edition.corpus.data_sets.filter(role="trial"))
        for _ in range(self.size.systems - 1):
            submission = make_submission(make_team_system(make_team(self.edition)))
            make_objective_run(submission, of_system)
            for data_set in trials:
                of_set = make_measured_run(submission.system, data_set)
                copy_files(file, submission, data_set, self.size.files // len(trials))
                self.copy_measures(of_set)
        self.other = submission
        without = EvaluationRun.objects.filter(kind=EvaluationRun.Kind.MEASURES, values=None)
        numbers = ", ".join(map(str, without.values_list("pk", flat=True)))
        others = f"(SELECT id FROM evaluation_evaluationrun WHERE id IN ({numbers})) r"
        for value in self.runs[0].values.all():
            copy(value, 1, others, run="r.id")
        for _ in range(self.edition.submissions_per_team):
            make_submission(self.system, state=Submission.State.REFUSED)
        Upload.objects.bulk_create(
            Upload(
                edition=self.edition,
                team=self.team,
                file_name=f"{number}.zip",
                size=1,
                state="expired",
                created_by=self.owner,
                expires_at=timezone.now(),
            )
            for number in range(self.size.systems)
        )

    def grow_study(self):
        systems = Submission.objects.filter(system__edition=self.edition, state="evaluated").order_by("system")
        study = self.study = make_study(
            edition=self.edition, evaluators=2, trials=self.size.trials, systems=1, certificate={"parts": [{}]}
        )
        of_study = [study.conditions.create(submission=one, code=one.system.label) for one in systems]
        items = list(study.presentations.order_by("pk"))
        heard = study.stimulus_files.select_related("item").order_by("pk").first()
        recordings = (
            "(SELECT DISTINCT u.id, u.name FROM challenges_utterance u WHERE u.corpus_id = "
            f"{self.edition.corpus_id} AND u.name LIKE '%trials%' ORDER BY u.id LIMIT {ITEM_SETS}) u"
        )
        of_items = f"FROM listening_item i WHERE i.study_id = {study.pk}"
        missing = f"u.id NOT IN (SELECT i.utterance_id {of_items})"
        copy(heard.item, 1, recordings, missing, name="u.name", utterance="u.id")
        said = f"(SELECT i.id {of_items} AND i.utterance_id IN (SELECT u.id FROM {recordings})) i"
        for system in of_study:
            copy(heard, 1, said, condition=str(system.pk), item="i.id")
        for place, item in enumerate(items):
            item.condition = of_study[place % len(of_study)] if place % 2 else study.conditions.get(code="")
            copy(item, ITEM_SETS - 1, key=f"'{item.key}-' || n.i", condition=str(item.condition.pk))
            same = f"(SELECT id FROM listening_presentation WHERE study_id = {study.pk} AND key LIKE '{item.key}-%') i"
            for sample in item.samples.all():
                copy(sample, 1, same, presentation="i.id")
        Presentation.objects.bulk_update(items, ["condition"])
        first, _ = study.blocks.order_by("pk")
        more = self.size.sessions - 2
        copy(first, more, number="n.i + 2")
        of_block = (
            "(SELECT b.id AS block, i.id AS item FROM listening_block b JOIN listening_presentation i USING (study_id)"
            f" WHERE b.study_id = {study.pk} AND b.number > 2"
        )
        for trial in first.trials.select_related("presentation"):
            key = trial.presentation.key
            source = f"{of_block} AND i.key = '{key}-' || (b.number % {ITEM_SETS - 1} + 1)) b"
            copy(trial, 1, source, block="b.block", presentation="b.item")
        self.listening = make_session(study)
        self.grow_sessions(make_finished_session(study), more)

    def grow_sessions(self, session, more):
        """Copies of a finished session: 7 of 10 finished, the others listen still, or left."""
        study = session.study
        copy(session.participant, more, person_key="'person-' || n.i || '-of-many'")
        people = (
            "(SELECT p.id AS person, b.id AS block, b.number AS i FROM listening_participant p"
            " JOIN listening_block b ON b.study_id = p.study_id"
            " AND p.person_key = 'person-' || (b.number - 2) || '-of-many'"
            f" WHERE p.study_id = {study.pk}) p"
        )
        copy(
            session,
            1,
            people,
            participant="p.person",
            block="p.block",
            token="'token-' || p.i",
            withdrawal_code="'code-' || p.i",
            state=f"CASE p.i % 10 {STATES} ELSE 'finished' END",
            step="CASE p.i % 10 WHEN 7 THEN 'trials' ELSE 'end' END",
        )
        of_study = f"s.study_id = {study.pk} AND s.token LIKE 'token-%'"
        sessions = f"(SELECT s.id, s.block_id FROM listening_session s WHERE {of_study}) s"
        both = "listening_session s JOIN listening_trial t USING (block_id)"
        trials = f"(SELECT s.id AS s, t.id AS t FROM {both} WHERE {of_study}) s"
        run(
            "UPDATE listening_block SET holder_id = (SELECT s.id FROM listening_session s WHERE s.block_id ="
            f" listening_block.id AND {of_study} AND s.state <> 'expired'), is_finished = (number % 10 < 7)"
            f" WHERE study_id = {study.pk} AND number > 2"
        )
        place = session.block.trials.first()
        for answer in session.answers.filter(trial=place):
            copy(answer, 1, trials, session="s.s", trial="s.t", rating="s.t % 10 + 1")
        for slot in "ab":
            now = timezone.now()
            serve = session.serves.create(trial=place, slot=slot, first_at=now, complete_at=now)
            copy(serve, 1, trials, session="s.s", trial="s.t")
            play = session.plays.create(trial=place, slot=slot, started_ms=1, heard_ms=600, is_whole=True)
            copy(play, 1, trials, session="s.s", trial="s.t")
        event = session.events.create(kind="pause", data={"ms": 5})
        copy(event, 5, sessions + " CROSS JOIN n", session="s.id")
        for kind in (Flag.Kind.TOO_FAST, Flag.Kind.STRAIGHT_LINING):
            flag = session.flags.create(kind=kind, data=FOUND)
            copy(flag, 1, sessions, "s.id % 4 = 0", session="s.id")
        rule = study.exclusion_rules.create(session=session, reason="to be revoked")
        rule.exclusions.create(session=session)
        self.rule = study.exclusion_rules.create(flag=Flag.Kind.TOO_FAST, reason="too fast")
        copy(self.rule.exclusions.create(session=session), 1, sessions, "s.id % 4 = 0", session="s.id")

    def grow_jobs(self):
        state = ("waiting", "running", *["succeeded"] * 16, "failed", "cancelled")
        made = [make_job(one, edition=self.edition.name) for one in dict.fromkeys(state)]
        kinds = {one.state: one for one in made}
        fields = [field.name for field in Job._meta.concrete_fields if field.name not in {"id", "created_at"}]
        Job.objects.bulk_create(
            Job(**{name: getattr(kinds[state[number % len(state)]], name) for name in fields})
            for number in range(self.size.jobs)
        )
        event = self.run.job.events.create(attempt=1, text="something happened")
        copy(event, self.size.sessions)
        audit = AuditEvent.objects.create(
            action="edition.changed", subject_type="edition", subject_id=str(self.edition.pk), subject=str(self.edition)
        )
        copy(audit, self.size.jobs)

    def add_others(self):
        count = range(self.size.others)
        corpora = Corpus.objects.bulk_create(Corpus(name=f"other-{n}", layout="manifest", source="x") for n in count)
        editions = Edition.objects.bulk_create(
            Edition(name=f"other-{n}", title=f"Other {n}", protocol="2022", is_listed=True, corpus=corpus)
            for n, corpus in enumerate(corpora)
        )
        through = Edition.organizers.through
        through.objects.bulk_create(through(edition=one, user=self.organizer) for one in editions)
        Study.objects.bulk_create(
            Study(name=f"other-{n}", title=f"Other {n}", edition=edition, languages=["en"])
            for n, edition in enumerate(editions)
        )

    def close_study(self):
        """End the study, analyse it, publish its results and the leaderboard."""
        self.study.state, self.study.closed_at = Study.State.CLOSED, timezone.now()
        self.study.save()
        codes = list(self.study.systems.values_list("code", flat=True))
        listeners = [f"listener-{number:04}" for number in range(self.size.sessions)]
        results = made_up_results(systems=codes, is_simulated=False, listeners=listeners)
        analysis = add_analysis(self.study, results)
        self.study.published_analysis, self.study.results_published_at = analysis, timezone.now()
        self.study.save()
        self.publish()

    def addresses(self, study):
        """Every address of the portal by its name, of this challenge and this study of it; but those of nothing."""
        named, _ = names_of(self)
        edition, corpus = self.edition, self.edition.corpus
        of_results = {"study": study.name, "scores": "raw", "figure": "violin-naturalness", "extension": "svg"}
        of_edition = {"edition": edition.name, "figure": "tradeoff-wer", "extension": "svg", "number": 1}
        of_edition |= {"file": "SHA256SUMS", "data_set": "tones_trials_f", "corpus": corpus.name}
        named |= {
            "": {"token": "nonsense", "secret": "nonsense"},
            "accounts": {"pk": 1},
            "people": {"pk": 1},
            "corpora": {"name": corpus.name, "data_set": "tones_trials_f", "utterance": corpus.utterances.last().name},
            "docs": {"name": "2022", "path": "search.json"},
            "downloads": {"name": build_wheel().name},
            "published": {"figure": "plane", "extension": "svg"},
            "anonymizers": {"figure": "ignorant", "extension": "svg"},
            "network-trainings": {"corpus": corpus.name, "training": self.network.pk, "seed": 1},
            "deletion": {"kind": "editions", "pk": edition.pk},
            **dict.fromkeys(("editions", "leaderboard", "listeners"), of_edition),
            "studies": of_results
            | {"session": self.listening.pk, "rule": self.rule.pk, "system": self.system.label}
            | {"language": "ar"},
            "listen": {"token": self.listening.token, "key": self.study.link_key}
            | dict.fromkeys(("step", "sound", "clip"), "x"),
        }
        named["teams"]["secret"] = "nonsense"
        named["submissions"] |= {"edition": edition.name, "other": self.other.pk}
        found = {}
        for name, parts in patterns():
            namespace, _, last = name.rpartition(":")
            known = named[kind_of(name)] | ({**of_edition, **of_results} if namespace == "api" else {})
            known |= {"table": "trials" if last == "export-csv" else "summary"}
            known |= {"name": "teams"} if name == "docs:page" else {}
            if name not in OF_NOTHING:
                found[name] = reverse(name, kwargs={part: known[part] for part in parts})
        return found


def copy_files(file, submission, data_set, count=10**9):
    """A file of each utterance of the set that the submission has none of, as many as asked for."""
    in_set = DataSet.utterances.through._meta.db_table
    source = (
        f"(SELECT utterance_id AS u FROM {in_set} WHERE dataset_id = {data_set.pk} AND utterance_id NOT IN"
        f" (SELECT utterance_id FROM submissions_submittedfile WHERE submission_id = {submission.pk}"
        f" AND data_set_id = {data_set.pk}) ORDER BY utterance_id LIMIT {count}) u"
    )
    copy(file, 1, source, submission=str(submission.pk), data_set=str(data_set.pk), utterance="u.u")


def clients(grown, roles):
    """The browser of each role, by its name."""
    people = {"visitor": None, "member": grown.owner, "organizer": grown.organizer, "operator": make_operator()}
    for role in roles:
        client = Client()
        if people[role] is not None:
            client.force_login(people[role])
        yield role, client


@contextmanager
def count_queries():
    """Gives a function that tells how many queries were made inside, without what begins and ends transactions."""
    reset_queries()  # no more than the last thousands are kept
    counted: list[int] = []
    with CaptureQueriesContext(connection) as queries:
        yield lambda: counted[0]
        counted.append(sum(not query["sql"].startswith(OF_TRANSACTIONS) for query in queries))
