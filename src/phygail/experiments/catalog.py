"""Every experiment by name, as data: those of the paper with what it printed, then those beyond it.

The paper's "PhyGAIL" is `phygail-taught` here; `reach-evolved` is this project's own policy. Numbers are those of its
Tables II (overall), III (ablation), IV (runtime) and of the text of Section V; curves without printed numbers are not
listed.
"""

from __future__ import annotations

from phygail.config import Registry
from phygail.experiments.experiment import WORLD_EXPERIMENTS, Experiment, Leg, Variant
from phygail.experiments.trained import TRANSFER
from phygail.sensing.imperfect import Sensing

SIZES = (20, 50, 100, 200, 500)
LARGE = (100, 200, 500)  # the paper's "large-scale settings"
DAMAGE = tuple(k / 20 for k in range(1, 20))  # 0.05 to 0.95; at N = 20 the last leaves one alive and is left out
THREE = (0.25, 0.5, 0.75)

POLICIES = ("reach-evolved", "phygail-taught")
PAPER_POLICY = POLICIES[1:]
CHEAP = ("reach-evolved", "reach", "sidr", "cr-ma", "center-fly", "hero", "convex")
FAST = (*POLICIES, *CHEAP[1:])
PLANNERS = ("cr-mgc", "demd", "gdr-ts")  # seconds to minutes per case: fewer cases
FEW = {500: 5}  # cases of planners where each takes a minute
LARGE_SWARMS = {200: 20, 500: 10}  # of the fast methods: flights of 500 UAVs take a second each
SLOW = {500: 2}  # of a rule with delayed news, where every UAV decides in an estimate of its own: 3 s a flight
FEWER_OF_POLICY = {500: 20}  # of phygail-taught where a flight takes as long as a planner's: 5 to 10 s

FEWER = "Planners fly fewer cases (column), the first of the same ones; every setting (N, damage) weighs the same."
FRESH = "Every case has a fresh layout with at least 10 m between UAVs; the paper uses one fixed layout per N."


def both(cases: int, planned: int, **settings: object) -> tuple[Leg, Leg]:
    """The fast methods and the planners on the same scenarios."""
    few = {n: min(planned, k) for n, k in FEW.items()}
    return (
        Leg("fast", FAST, cases=cases, cases_at=LARGE_SWARMS, **settings),  # type: ignore[arg-type]
        Leg("planners", PLANNERS, cases=planned, cases_at=few, **settings),  # type: ignore[arg-type]
    )


PAPER: Registry[Experiment] = Registry("experiment")


def _add(experiment: Experiment) -> None:
    PAPER.add(experiment.name, experiment)


# --- flown -----------------------------------------------------------------------------------------------------------

_add(
    Experiment(
        "overall",
        "Convergence, recovery time and contacts over swarm size and damage (paper: Fig. 4, Table II)",
        "How often, how fast and how safely does each method reconnect?",
        both(50, 10, uavs=SIZES, damage=DAMAGE),
        tables=("aggregate", "by-size"),
        figures=("curves",),
        published={
            name: {
                "convergence": rate, "time_s": time, "time_std_s": time_std,
                "contact_rate_capped": contacts, "contact_std": contacts_std, "rank": rank,
            }
            for name, rate, time, time_std, contacts, contacts_std, rank in (
                ("phygail-taught", 1.000, 20.14, 22.42, 0.161, 0.115, 2.061),
                ("demd", 0.990, 26.55, 22.84, 0.964, 0.419, 3.956),
                ("cr-mgc", 0.949, 33.84, 29.92, 0.772, 0.313, 4.462),
                ("gdr-ts", 0.975, 36.48, 32.84, 0.931, 0.537, 4.471),
                ("sidr", 0.472, 49.36, 38.88, 0.131, 0.116, 4.731),
                ("center-fly", 0.998, 28.94, 25.12, 1.173, 0.622, 4.798),
                ("cr-ma", 0.606, 49.39, 40.81, 0.333, 0.176, 4.904),
                ("hero", 0.276, 67.56, 43.51, 0.809, 0.584, 6.617),
            )
        },
        remarks=(
            FRESH,
            "N = 20 is damaged up to 0.9: at 0.95 one UAV is left, with nobody to reach.",
            FEWER,
            "The paper's collision column is best explained as the capped contact rate (METHODS F4), which stands "
            "beside it; contacts per UAV count every time a pair comes closer than 10 m.",
            "The paper ranks eight methods, we rank all that flew: ranks compare within a column only.",
            "The paper's SIDR row is the row of a defect in the released code (METHODS F1).",
        ),
    )
)  # fmt: skip

_add(
    Experiment(
        "runtime",
        "First response, solving time and steps (paper: Table IV)",
        "What does a decision cost, and what does a whole recovery cost?",
        (Leg("all", (*FAST, *PLANNERS), LARGE, THREE, 5, alone=True),),
        tables=("runtime",),
        published={
            name: {f"{what}@{n}": value for n, row in zip(LARGE, rows, strict=True)
                   for what, value in zip(("response_ms", "solve_s", "steps"), row, strict=True)}
            for name, *rows in (
                ("phygail-taught", (4.02, 0.14, 52.7), (7.42, 0.82, 143.5), (17.61, 6.60, 269.5)),
                ("center-fly", (0.46, 0.08, 114.2), (1.73, 0.93, 301.2), (9.29, 8.98, 501.0)),
                ("hero", (1.43, 0.82, 515.8), (4.73, 4.59, 761.3), (23.21, 39.30, 1280.0)),
                ("sidr", (1.19, 0.35, 266.9), (4.17, 4.01, 686.4), (22.87, 21.39, 642.8)),
                ("cr-mgc", (511.93, 0.58, 94.4), (556.10, 1.28, 238.6), (4901.74, 17.18, 680.9)),
                ("demd", (2862.48, 2.87, 100.1), (2792.71, 3.40, 223.7), (16032.39, 24.88, 493.9)),
                ("gdr-ts", (9185.78, 9.28, 119.1), (14404.36, 15.29, 287.3), (69241.05, 80.73, 641.6)),
                ("cr-ma", (14.96, 3.27, 201.2), (46.75, 24.86, 487.9), (247.65, 241.10, 924.1)),
            )
        },
        remarks=(
            "One worker with one thread; the load of the machine stands above. Times are medians over cases: the first "
            "episode of a process also pays for loading libraries.",
            "The paper names neither its damage ratios nor its machine for this table; ours are 0.25, 0.5 and 0.75.",
        ),
    )
)  # fmt: skip

POLICY_REMARK = "phygail-taught flies fewer cases at N = 500, where a flight takes 5 to 10 s."
_add(
    Experiment(
        "noise",
        "Localization noise on every observed position (paper: Fig. 5)",
        "How much does each method lose when positions are wrong by 0 to 10 m?",
        tuple(
            leg
            for sigma in (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
            for leg in (
                Leg(
                    f"fast-{sigma:g}m",
                    ("reach-evolved", "reach", "sidr"),
                    LARGE,
                    THREE,
                    10,
                    FEW,
                    sensing=Sensing(sigma),
                ),
                Leg(f"policy-{sigma:g}m", PAPER_POLICY, LARGE, THREE, 50, FEWER_OF_POLICY, sensing=Sensing(sigma)),
                Leg(f"planners-{sigma:g}m", ("cr-mgc", "demd"), LARGE, THREE, 10, FEW, sensing=Sensing(sigma)),
            )
        ),
        tables=("sensing",),
        figures=("sensing",),
        published={
            "phygail-taught": {"convergence@0": 1.0, "convergence@10": 0.998, "time_s@0": 17.94, "time_s@10": 21.30}
        },
        remarks=(
            "Noise is Gaussian, fresh in every step, on UAVs, damaged UAVs and the center; links, success and "
            "the speed limit follow the truth. Planners plan on the noisy snapshot and fly with noisy feedback.",
            FEWER,
            POLICY_REMARK,
        ),
    )
)
_add(
    Experiment(
        "delay",
        "News of neighbors delayed by 0 to 5 steps (paper: Section V-C)",
        "How much does each method lose when news of neighbors is old?",
        tuple(
            leg
            for steps in range(6)
            for leg in (
                Leg(
                    f"fast-{steps}",
                    ("reach-evolved", "sidr"),
                    LARGE,
                    THREE,
                    10,
                    SLOW,
                    sensing=Sensing(delay_steps=steps),
                ),
                Leg(f"policy-{steps}", PAPER_POLICY, LARGE, THREE, 50, FEW, sensing=Sensing(delay_steps=steps)),
            )
        ),
        tables=("sensing",),
        figures=("sensing",),
        published={
            "phygail-taught": {"convergence@0": 1.0, "convergence@5": 1.0, "time_s@0": 17.94, "time_s@5": 18.37}
        },
        remarks=(
            "A UAV knows its own state now and all others as they were some steps ago.",
            POLICY_REMARK,
        ),
    )
)

_add(
    Experiment(
        "propositions",
        "The paper's propositions, measured (paper: Section IV-E, IV-F)",
        "Do the graph, the pseudo-force, the terminal reward and the cost per UAV stay bounded as the swarm grows?",
        (Leg("flights", ("reach-evolved", "phygail-taught", "reach", "sidr", "center-fly", "hero"), SIZES, THREE, 10),),
        tables=("propositions", "terminal-reward"),
        measured=(20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000),
        measured_cases=3,
        remarks=(
            "With one shared center its out-degree is the number n of alive UAVs, so the norm is at least sqrt(n) and "
            "grows with the swarm: the proof of the paper's Proposition 1 overlooks the center node",
            "C_pack = (2 R / 10 m + 1)^2 = 625: the layouts keep UAVs 10 m apart. In flight nothing keeps them apart "
            "but the safety filter, and the paper's own 15 m is a penalty of training, not a constraint",
            "The bound on the pseudo-force follows from the weights (LayerNorm), not from the swarm",
        ),
    )
)

# --- trained for the occasion: `phygail reproduce NAME --experts FILE.h5 --epochs N` ----------------------------------

FULL = Variant("full", "PhyGAIL")
SIX = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
_TRAINED = Leg("policies", ("phygail",), (20, 100, 200), SIX, 10)
_LARGE_SWARMS = Leg("large", ("phygail",), (500,), THREE, 5)  # a flight takes seconds
_BUDGET = "Every variant has the same budget (above), far below the paper's 1000 epochs of 32 x 1000 steps"


Three = tuple[float, float, float]  # at N = 100, 200, 500


def _ablated(name: str, label: str, settings: str, conv: Three, time: Three, rank: float) -> Variant:
    """Differences to the full model at N = 100, 200, 500 and the overall rank, as Table III prints them."""
    numbers = {f"convergence@{n}": value for n, value in zip(LARGE, conv, strict=True)}
    numbers |= {f"time_s@{n}": value for n, value in zip(LARGE, time, strict=True)}
    return Variant(name, label, tuple(settings.split()), {**numbers, "rank": rank})


_add(
    Experiment(
        "ablation",
        "What each part of PhyGAIL contributes (paper: Table III, Fig. 6)",
        "How much worse is the policy without each part, trained with the same budget?",
        (_TRAINED, _LARGE_SWARMS),
        tables=("verdicts", "variants", "learning"),
        figures=("learning",),
        variants=(
            FULL,
            _ablated("no-attraction", "w/o attraction gate", "gates=no-attraction",
                     (-0.267, -0.260, -0.700), (16.88, 22.27, 63.91), 6.077),
            _ablated("no-repulsion", "w/o repulsion gate", "gates=no-repulsion",
                     (-0.667, -0.833, -0.807), (37.48, 53.10, 75.01), 7.185),
            _ablated("gat", "w/ GAT instead of PhyGNN", "layer=gat",
                     (-0.000, -0.007, -0.293), (5.70, 22.22, 51.43), 6.457),
            _ablated("sage", "w/ GraphSAGE instead of PhyGNN", "layer=sage",
                     (-0.067, -0.107, -0.260), (9.35, 11.85, 44.56), 6.250),
            _ablated("gcn", "w/ GCN instead of PhyGNN", "layer=gcn",
                     (-0.353, -0.447, -0.673), (19.36, 33.03, 64.90), 8.216),
            _ablated("no-knn", "w/o KNN selection", "graph=no-knn",
                     (-0.007, -0.007, -0.113), (1.52, 7.01, 27.24), 4.940),
            _ablated("no-damaged", "w/o damaged neighbor", "graph=no-damaged",
                     (-0.040, -0.120, -0.433), (7.79, 19.96, 50.88), 6.351),
            _ablated("no-center", "w/o virtual center", "graph=no-center",
                     (-0.127, -0.347, -0.640), (13.80, 29.66, 65.69), 7.294),
            Variant("no-center-recentered", "w/o virtual center, nor its coordinates", ("graph=no-center-recentered",)),
            _ablated("no-gail", "w/o GAIL reward", "w_il=0", (-0.000, -0.000, -0.007), (1.27, 5.68, 20.18), 4.591),
            Variant("gail-only", "w/o any reward but GAIL's",
                    ("r_base=0", "r_time=0", "step_penalty=0", "w_col=0", "p_fail=0")),
            _ablated("own-critic", "w/o centralized critic", "centralized_critic=false",
                     (-0.000, -0.000, -0.160), (2.43, 6.34, 38.82), 5.198),
            _ablated("no-expert-time", "w/o expert time reward", "expert_time=false",
                     (-0.187, -0.513, -0.607), (15.40, 35.47, 57.84), 7.429),
            _ablated("no-time", "w/o any time reward", "r_time=0 step_penalty=0",
                     (-0.553, -0.593, -0.667), (26.95, 35.87, 58.70), 8.011),
        ),
        remarks=(
            _BUDGET,
            "Without the center node positions are still relative to the center, which leaks it (METHODS 4.7): the "
            "second variant measures from the subnet's own centroid",
            "Ranks are over our variants, the paper's over its own: compare within a column only",
        ),
    )
)  # fmt: skip
_add(
    Experiment(
        "sensitivity",
        "How many neighbors a UAV attends to (paper: Fig. 7)",
        "What do K_act and K_dmg change?",
        (_TRAINED,),
        tables=("variants", "learning"),
        figures=("neighbors", "learning"),
        variants=(
            FULL,
            *(Variant(f"k-act-{k}", f"K_act = {k}", (f"graph=k-act-{k}",)) for k in (1, 2, 4, 6, 12)),
            Variant("no-damaged", "K_dmg = 0", ("graph=no-damaged",)),
            *(Variant(f"k-dmg-{k}", f"K_dmg = {k}", (f"graph=k-dmg-{k}",)) for k in (1, 2, 5)),
        ),
        remarks=(_BUDGET, "PhyGAIL has K_act = 8 and K_dmg = 3. The paper prints no numbers beside its curves"),
    )
)
_add(
    Experiment(
        "training",
        "How training goes (paper: Fig. 8a)",
        "When does the policy learn to reconnect, and when to be fast?",
        tables=("learning",),
        figures=("learning",),
        variants=(FULL,),
        remarks=("Success and time over bound are those of the policy's mean on held-out scenarios of 20 UAVs",),
    )
)
_add(
    Experiment(
        "case-study",
        "One case along the training (paper: Fig. 8b)",
        "How does behavior change from the first policies to the last?",
        (Leg("case", ("phygail",), (20,), (0.5,), 1),),
        tables=("case-study",),
        variants=(FULL,),
        checkpoints=4,
        remarks=("The paper's case: not solved at epoch 20, then 130, 68 and 55 steps at epochs 35, 190 and 505",),
    )
)


RULES = ("reach-evolved", "reach", "sidr")  # decentralized and cheap enough for 10,000 UAVs
FOUR = (0.25, 0.5, 0.75, 0.9)
FIVE = (0.1, 0.3, 0.5, 0.7, 0.9)  # a coarser 0.05 to 0.95, with the same mean
CLASSIC = ("vcr", "ledir", "dcrmf", "rnfr", "cist", "hpc-cr")  # of the paper's Table I, for single failures
FEW_MOVE = (*CLASSIC, "bridge", "hero", "sidr", "reach", "reach-evolved", "convex")
FAILING = (20, 50, 100, 200, 250)  # swarm sizes; Table I's largest is 250
HUGE = (1000, 2000, 5000, 10_000)

BEYOND: Registry[Experiment] = Registry("experiment")


def _add_beyond(experiment: Experiment) -> None:
    BEYOND.add(experiment.name, experiment)


_add_beyond(
    Experiment(
        "optimality",
        "Recovery time over the lower bound",
        "How far is each method from what geometry allows?",
        PAPER.get("overall").legs,
        tables=("over-bound",),
        figures=("over-bound",),
        flights_of="overall",
        remarks=("Sum of steps over sum of lower bounds within each setting, failures with their whole budget.", FEWER),
    )
)
_add_beyond(
    Experiment(
        "safety",
        "Every method with and without the safety filter",
        "What does it cost to make new contacts impossible?",
        (
            Leg("fast-off", FAST, LARGE, FOUR, 20, LARGE_SWARMS),
            Leg("fast-on", FAST, LARGE, FOUR, 20, LARGE_SWARMS, safety=True),
            Leg("planners-off", PLANNERS, LARGE, FOUR, 10, FEW),
            Leg("planners-on", PLANNERS, LARGE, FOUR, 10, FEW, safety=True),
        ),
        tables=("safety",),
        remarks=(
            "The same cases with and without the filter; contacts that already exist at the start are no events.",
        ),
    )
)
_add_beyond(
    Experiment(
        "scale",
        "Swarms of 1,000 to 10,000 UAVs",
        "Does it still work, how far from the bound, and does the cost per UAV stay constant?",
        (
            Leg("fast", RULES, HUGE, THREE, 5, {5000: 2, 10_000: 1}),
            Leg("crowd", ("center-fly",), HUGE[:-1], THREE, 10, {5000: 1}),
            Leg("policy", PAPER_POLICY, HUGE[:-1], THREE, 5, {2000: 2, 5000: 1}),
        ),
        tables=("scale",),
        remarks=(
            "Cost is wall time of all commands per alive UAV and step, on a machine that was not kept quiet.",
            "The map grows with the swarm at the density of 500 UAVs on 1,600 m.",
            "Fewer cases where flights take minutes: phygail-taught thinks long, and center-fly ends in a crowd in "
            "which nearly every pair is a link. At N = 10,000 neither was flown.",
        ),
    )
)
_add_beyond(
    Experiment(
        "paper-layouts",
        "The paper's own fixed layouts",
        "Does the order of the methods depend on fresh layouts?",
        (
            Leg("fast", CHEAP, SIZES, FIVE, 50, LARGE_SWARMS, source="layouts"),
            Leg("policy", PAPER_POLICY, SIZES, FIVE, 50, FEWER_OF_POLICY, source="layouts"),
            Leg("planners", PLANNERS, SIZES, FIVE, 10, FEW, source="layouts"),
        ),
        tables=("aggregate", "by-size"),
        figures=("curves",),
        published=PAPER.get("overall").published,
        remarks=(
            "One layout per N, random damage; equal damage sets are flown once, so settings with few distinct ones "
            "have fewer cases. These layouts hold pairs closer than 10 m from the start (METHODS F5).",
            "The paper averages over damage 0.05 to 0.95 in steps of 0.05, we over 0.1 to 0.9 in steps of 0.2.",
            FEWER,
            POLICY_REMARK,
        ),
    )
)
_add_beyond(
    Experiment(
        "strike",
        "An area strike instead of random damage",
        "Does the order of the methods depend on how the damage is spread?",
        both(20, 10, uavs=LARGE, damage=FIVE, source="strike"),
        tables=("by-size", "over-bound"),
        figures=("curves",),
        remarks=("The UAVs nearest to a random point of the map are lost, as many as the ratio says.", FEWER),
    )
)
_add_beyond(
    Experiment(
        "single-failure",
        "One critical UAV fails, and two or three (paper: Table I)",
        "What does it cost to move a few UAVs instead of everybody, in time, meters and coverage?",
        (
            Leg("one", FEW_MOVE, FAILING, (), 200, source="single", failures=(1,)),
            Leg("spread", FEW_MOVE, FAILING, (), 100, source="single", failures=(2, 3)),
            Leg("region", FEW_MOVE, FAILING, (), 100, source="region", failures=(2, 3)),
        ),
        tables=("failures", "failures-by-size"),
        figures=("failures",),
        remarks=(
            "Layouts are redrawn until one has a critical UAV: these are swarms with a weak spot, not average ones.",
            "Failures enter with their whole step budget.",
            "Messages are broadcasts by each method's rule, our own count: published packet counts do not compare.",
            "No text of the six publications was at hand: the classics are after them, and no published number stands "
            "here (METHODS 9.0). Table I gives swarm scales of 15 to 250 for them and calls their damage small.",
        ),
    )
)

_add_beyond(TRANSFER)
for _experiment in WORLD_EXPERIMENTS:
    _add_beyond(_experiment)

EXPERIMENTS: Registry[Experiment] = Registry("experiment")
for _part in (PAPER, BEYOND):
    for _name in _part:
        EXPERIMENTS.add(_name, _part.get(_name))
