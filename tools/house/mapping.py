"""The one table of the move: new module -> old modules in order, symbols that go elsewhere, renames, docstrings."""

# new module: (headline of the docstring or None = that of the only source, [old modules in the order of their bodies])
TARGETS = {
    "weights": (
        "Weights and policies read without torch, so that they fly on the light install.",
        ["tensors", "models.onnx_numbers", "models.runtime"],
    ),
    # the world
    "swarm.layout": (
        "Layouts: where the UAVs of a swarm are before the damage, and which UAVs a failure takes.",
        ["swarm.formation", "swarm.damage", "swarm.layouts", "swarm.scenario"],
    ),
    "swarm.scenario": (None, ["swarm.scenario"]),
    "swarm.links": (
        "Links, subnets and the Laplacian of the alive; sums and means by subnet.",
        ["swarm.links", "groups"],
    ),
    "swarm.tree": (
        "Spanning trees, the gap that they measure and the lower bound on recovery time (METHODS 2.5, 8.1).",
        ["swarm.tree", "swarm.bounds"],
    ),
    "swarm.simulator": (
        "The simulator: state, the one step, an episode and what it is judged by (METHODS 2.6).",
        ["swarm.state", "swarm.dynamics", "swarm.metrics", "swarm.episode"],
    ),
    "swarm.batch": (
        "Many worlds at once, for training: the arithmetic of `swarm.simulator` on padded arrays.",
        ["swarm.batch_cases", "swarm.batch_links", "swarm.batch"],
    ),
    # what a UAV may know
    "sensing": (None, ["perception"]),
    "sensing.views": (None, ["perception.view"]),
    "sensing.imperfect": (
        "Imperfect sensing for every method: noise, delay, and the picture that each UAV has of its subnet (METHODS 4.8).",
        ["perception.noise", "perception.pictures"],
    ),
    # how things look
    "render.style": (None, ["evaluation.style"]),
    "render.tables": (
        "Cells and tables, as Markdown and on the terminal.",
        ["evaluation.text_table", "evaluation.tables"],
    ),
    "render.scene": (
        "The swarm seen from above: one map panel, a recovery before and after, one frame of a running episode.",
        ["evaluation.scene", "evaluation.figures", "envs.frames"],
    ),
    "render.animation": (None, ["evaluation.animation"]),
    # rules and what methods share
    "methods.base": (
        "What a method is, how it is registered, and which methods take part.",
        ["methods.faults", "methods.base", "evaluation.roster", "evaluation.reproduce"],
    ),
    "methods.controller": (
        "A method as a controller of the simulator, with perfect or imperfect sensing (METHODS 4.8).",
        ["methods.base", "methods.sensed", "evaluation.flight", "experts.pools"],
    ),
    "methods.steering": (
        "Motion that several methods share: flying to a point, repulsion, keeping links (METHODS 2.5).",
        ["methods.forces", "methods.link_projection", "methods.links"],
    ),
    "methods.planning": (
        "Plan once, then fly (METHODS 2.5), and the contraction operator H = I - K L of a swarm (METHODS 3.4).",
        ["methods.plan", "methods.contraction", "methods.cr_mgc"],
    ),
    "methods.convex": (None, ["methods.convex"]),
    "methods.convex.search": (
        "The tree that `convex` plans along, searched, and the two cone programs behind it (METHODS 8.2).",
        ["methods.cone", "methods.tree_search"],
    ),
    # what trainings share
    "learning.run": (
        "The loop around every training of a method: settings, progress, log, validation, best snapshot on disk.",
        ["training.profiles", "training.validate", "training.loop"],
    ),
    "learning.log": (
        "What a run tells: a line per epoch on disk, how it goes on the terminal, and its curves.",
        ["training.log", "training.curves"],
    ),
    "learning.networks": (
        "What all networks share: where they start from, their weights on disk, one thread, seeded noise.",
        ["models.initial", "models.weights", "models.plan_search", "training.collector", "models.layers"],
    ),
    # planners with graph convolutions
    "methods.gcn_planners.cr_mgc": (None, ["methods.cr_mgc"]),
    "methods.gcn_planners.demd": (None, ["methods.demd"]),
    "methods.gcn_planners.network": (
        "The network of CR-MGC and DEMD, a stack of graph convolutions, and Adam on its weights without autograd.",
        ["models.layers", "models.planners", "models.stack_descent"],
    ),
    "methods.gcn_planners.search": (
        "Online optimization of a planner network for one case: CR-MGC and DEMD (METHODS 3.4, 3.5).",
        ["models.plan_loss", "models.plan_search", "models.demd"],
    ),
    "methods.gcn_planners.train_cr_mgc": (
        "Meta-learning of CR-MGC's initial weights (METHODS 3.4): `phygail train cr-mgc`. DEMD's pre-training uses it, too.",
        ["training.maml", "training.cr_mgc"],
    ),
    "methods.gcn_planners.train_demd": (None, ["training.demd"]),
    "methods.gdr_ts": (None, ["methods.gdr_ts"]),
    "methods.gdr_ts.policy": (
        "The plan policy of GDR-TS and its policy gradient (METHODS 3.6): a one-step decision problem.",
        ["models.layers", "models.gdr_ts"],
    ),
    "methods.gdr_ts.train": (None, ["training.gdr_ts"]),
    "methods.cr_ma": (None, ["methods.cr_ma"]),
    "methods.cr_ma.train": (
        "MADDPG training of CR-MA (METHODS 3.7): `phygail train cr-ma`.",
        ["models.maddpg", "training.cr_ma"],
    ),
    # the paper
    "methods.phygail": (
        "PhyGAIL, the paper's method (METHODS 4): `phygail-paper` flies its policy. No torch.",
        ["models.runtime", "methods.policy", "methods.phygail"],
    ),
    "methods.phygail.graph": (
        "The bounded heterogeneous graph of the paper as a dense slot table, and what the network reads about a node\n(METHODS 4.1, paper IV-B).",
        ["perception.features", "perception.graph"],
    ),
    "methods.phygail.graph_batch": (None, ["perception.batch", "training.observe"]),
    "methods.phygail.network": (
        "PhyGNN, the physics-gated message passing network, and the GCN, GAT and GraphSAGE of the ablation\n(paper IV-C, METHODS 4.2, 4.7).",
        ["models.inputs", "models.phygnn", "models.encoders"],
    ),
    "methods.phygail.heads": (
        "Actor, critic and discriminator on the graph encoder (METHODS 4.2).",
        ["models.actor", "models.critic", "models.discriminator"],
    ),
    "methods.phygail.config": (None, ["training.profiles"]),
    "methods.phygail.rewards": (
        "Rewards of the paper (METHODS 4.3, paper IV-D), why waiting does not pay, and shaping with the gap of the swarm\n(METHODS 2.5, 8.5).",
        ["training.rewards", "training.shaping"],
    ),
    "methods.phygail.rollout": (
        "Fly the exploring policy in many worlds, on wider maps if asked for; keep what it saw, did and got.",
        ["training.buffer", "training.maps", "training.collector"],
    ),
    "methods.phygail.gail": (None, ["training.gail", "training.rewards"]),
    "methods.phygail.mappo": (
        "MAPPO: PPO per alive UAV with one shared actor and a centralized critic (METHODS 4.3, 4.4), and its advantages.",
        ["training.gae", "training.mappo"],
    ),
    "methods.phygail.learner": (
        "The learner: networks, optimizers, where a run stands, its validation, and its state on disk.",
        ["training.holdout", "training.learner", "training.checkpoint"],
    ),
    "methods.phygail.warm_start": (
        "Optional warm start, to be disclosed: behavior cloning of expert frames, then DAgger (METHODS 4.6).",
        ["training.clone", "training.teach"],
    ),
    "methods.phygail.train": (
        "Algorithm 1 of the paper: collect, judge, reward, estimate, learn. A run folder resumes bit for bit.",
        ["training.run", "training.trainer"],
    ),
    "methods.phygail.export": (None, ["models.export"]),
    "methods.phygail.experts": (None, ["experts"]),
    "methods.phygail.experts.recipe": (
        "Demonstrations: which scenarios, which methods, and the fastest success as the expert (METHODS 4.5, paper IV-D).",
        ["experts.recipe", "experts.pools", "experts.demonstrate"],
    ),
    "methods.phygail.experts.database": (
        "The expert database: flat arrays, a journal while it is built, one HDF5 file.",
        ["experts.archive", "experts.journal", "experts.store"],
    ),
    "methods.phygail.experts.dataset": (
        "Read an expert database: frames for the discriminator, turned and mirrored; scenarios with T_E to train in.",
        ["experts.augment", "experts.frames", "experts.dataset"],
    ),
    "methods.phygail.experts.build": (None, ["experts.build"]),
    "methods.phygail.experts.report": (
        "What an expert database holds: who wins, how long experts take; tables, Markdown, a histogram of T_E.",
        ["experts.summary", "evaluation.expert_report"],
    ),
    # the evolved rule
    "methods.reach_evolved": (
        "`phygail`, the evolved rule (docs/methods/phygail.md), and `phygail-clone`, where its evolution began. No torch.",
        ["methods.phygail"],
    ),
    "methods.reach_evolved.beliefs": (
        "Lost teammates as graph nodes: who may still be alive, where by now, and how sure a subnet is (METHODS 8.4, 8.5).",
        ["perception.lost", "perception.pictures"],
    ),
    "methods.reach_evolved.gates": (
        "The gates on lost teammates and the anchor gate per subnet: in numpy, and in ONNX Runtime, which flies. No torch.",
        ["models.gates", "models.gate_runtime"],
    ),
    "methods.reach_evolved.compiled": (
        "One flight of the evolved rule as a compiled loop: what evolution flies, thousands of times a minute.",
        ["training.flight_loop"],
    ),
    "methods.reach_evolved.lessons": (
        "Lessons: worlds with at most 20 UAVs flying, and behavior cloning of `reach` in them, where evolution starts.",
        ["training.worlds", "training.clone_reach"],
    ),
    "methods.reach_evolved.train": (
        "Training of the evolved rule: clone reach, then evolve weights and beliefs in compiled flights, validated zero-shot.",
        ["training.genes", "training.flights", "training.evolve", "training.evolve_run"],
    ),
    "methods.reach_evolved.export": (None, ["models.gate_export"]),
    # experiments
    "experiments": (None, ["evaluation"]),
    "experiments.grid": (None, ["evaluation.grid"]),
    "experiments.rows": (None, ["evaluation.rows"]),
    "experiments.task": (None, ["evaluation.flight"]),
    "experiments.engine": (
        "Engines: workers that fly episodes. A worker that dies loses no finished row, and its episodes are flown again.",
        ["evaluation.worker", "evaluation.pool", "evaluation.local_engine"],
    ),
    "experiments.ray_engine": (None, ["evaluation.ray_engine"]),
    "experiments.folder": (
        "The folder of a comparison: what it holds, whether a run may resume in it, and where it was made.",
        ["evaluation.machine", "evaluation.row_checks", "evaluation.folder"],
    ),
    "experiments.runner": (
        "Scenarios x methods -> one row per episode, in parallel, resumable at any moment; folders that grow, leg by leg.",
        ["evaluation.runner", "evaluation.collect", "evaluation.flying"],
    ),
    "experiments.experiment": (
        "What an experiment is: flights and trainings as data, how a user scales them, and the scenarios of a leg.",
        ["evaluation.experiment", "evaluation.draws"],
    ),
    "experiments.catalog": (
        "Every experiment by name, as data: those of the paper with what it printed, then those beyond it.",
        ["evaluation.paper", "evaluation.beyond", "evaluation.catalog"],
    ),
    "experiments.reproduce": (
        "Do what an experiment needs (fly, measure, train), resumable at any moment, and report it from rows on disk alone.",
        ["evaluation.report", "evaluation.reproduce"],
    ),
    "experiments.trained": (None, ["evaluation.trained"]),
    "experiments.statistics": (
        "From rows on disk to figures per method: means in which every setting weighs the same, 95 % intervals (METHODS 2.6).",
        [
            "evaluation.summary",
            "evaluation.intervals",
            "evaluation.training_files",
            "evaluation.evidence",
            "evaluation.report_tables",
            "evaluation.trained_tables",
        ],
    ),
    "experiments.summary": ("Summaries of a comparison, as Markdown and on the terminal.", ["evaluation.tables"]),
    "experiments.paper_tables": (
        "The tables of the experiments, each a function from evidence to Markdown; the paper's numbers stand beside ours.",
        ["evaluation.report_tables", "evaluation.trained_tables"],
    ),
    "experiments.propositions": (
        "The paper's propositions, measured against claimed: perception graph, pseudo-force, cost per UAV\n(paper IV-E, IV-F, Appendices A-C).",
        ["evaluation.propositions", "evaluation.proposition_tables"],
    ),
    "experiments.figures": (
        "Line figures: curves over damage, over noise or delay, over budgets of neighbors, over training.",
        ["evaluation.curves", "evaluation.sensing_figure", "evaluation.neighbors_figure", "evaluation.trained_tables"],
    ),
    "experiments.failures": (
        "What failures do: to a layout, before any; cases of single failures, and what a flight is judged by beyond its time.",
        ["evaluation.inspection", "evaluation.failures"],
    ),
    "swarm.failures": (
        "Failures of single UAVs: who is critical, cases in which one of them fails, and what is still watched (METHODS 9.1, 9.9).",
        ["swarm.coverage", "swarm.failures"],
    ),
    "web.build": (None, ["web.build", "web.names"]),
    "web.races": (
        "The races that a server flies: one worker process each, everything it told kept for a client that comes back.",
        ["web.worker", "web.races"],
    ),
    "web.server": (None, ["web.server", "web.runs"]),
    "cli.page": ("`phygail play` and `phygail serve`.", ["cli.play", "cli.serve"]),
    # environments and commands
    "envs.recovery_v0": (
        "Reconnecting a shattered swarm as a PettingZoo parallel environment.",
        ["envs.sources", "envs.recovery_v0"],
    ),
    "envs.observation": (
        "What an agent observes (the graph of METHODS 4.1 seen from one UAV) and its default reward (METHODS 4.3).",
        ["envs.observation", "envs.reward"],
    ),
    "cli.options": (
        "Flags that several commands share, their checks, and output: results on stdout, everything else on stderr.",
        ["cli.options", "cli.console"],
    ),
    "cli.train": ("`phygail train`.", ["cli.train", "cli.train_phygail", "cli.train_evolve"]),
}

# Where a module's symbols (and those that it gets meanwhile) go unless SPLITS says otherwise.
DEFAULT = {
    "training.profiles": "methods.phygail.config", "tensors": "weights", "models.runtime": "weights",
    "swarm.scenario": "swarm.scenario", "perception.pictures": "sensing.imperfect", "evaluation.tables": "experiments.summary",
    "evaluation.figures": "render.scene", "methods.base": "methods.base", "evaluation.roster": "methods.base", "evaluation.reproduce": "experiments.reproduce",
    "evaluation.flight": "experiments.task", "experts.pools": "methods.phygail.experts.recipe", "methods.cr_mgc": "methods.gcn_planners.cr_mgc",
    "models.plan_search": "methods.gcn_planners.search", "training.collector": "methods.phygail.rollout", "training.rewards": "methods.phygail.rewards", "models.layers": "learning.networks",
    "methods.phygail": "methods.reach_evolved", "evaluation.report_tables": "experiments.paper_tables", "evaluation.trained_tables": "experiments.paper_tables",
}  # fmt: skip

# old module -> {symbol: new module}
SPLITS = {
    "training.profiles": dict.fromkeys(("override", "_like", "_Config"), "learning.run"),
    "models.runtime": dict.fromkeys(
        ("INPUTS", "OUTPUT", "KIND", "VERSION", "Policy", "load_policy"), "methods.phygail"
    ),
    "swarm.scenario": dict.fromkeys(("load_layout", "save_layout"), "swarm.layout"),
    "perception.pictures": dict.fromkeys(("LateBeliefs",), "methods.reach_evolved.beliefs"),
    "evaluation.tables": dict.fromkeys(("NOTHING", "cell_text", "markdown_table", "terminal_table"), "render.tables"),
    "methods.base": dict.fromkeys(("controller", "run_episode"), "methods.controller"),
    "evaluation.reproduce": dict.fromkeys(("why_not",), "methods.base"),
    "evaluation.flight": dict.fromkeys(("fly_case", "_options"), "methods.controller"),
    "experts.pools": dict.fromkeys(("can_fly",), "methods.controller"),
    "methods.cr_mgc": dict.fromkeys(("canonical_order",), "methods.planning"),
    "models.plan_search": dict.fromkeys(("one_thread",), "learning.networks"),
    "training.rewards": dict.fromkeys(("total_reward",), "methods.phygail.gail"),
    "training.collector": dict.fromkeys(("noise_generator",), "learning.networks"),
    "models.layers": {
        "GraphConvolution": "methods.gcn_planners.network",
        "GraphAttention": "methods.gdr_ts.policy",
        "NEGATIVE_SLOPE": "methods.gdr_ts.policy",
    },
    "methods.phygail": {"PhygailPaper": "methods.phygail"},
    "evaluation.report_tables": dict.fromkeys(("sensed_means", "sensed_column"), "experiments.statistics"),
    "evaluation.trained_tables": dict.fromkeys(
        ("with_variants", "_SEEDED", "validations", "_trainings"), "experiments.statistics"
    )
    | dict.fromkeys(("draw_learning", "learning_figure", "learning_curves", "DISTINCT"), "experiments.figures"),
}

# (old module, symbol) -> new name
RENAMES = {
    ("evaluation.trained_tables", "_SEEDED"): "SEEDED",
    ("evaluation.trained_tables", "_trainings"): "trainings_of",
    ("models.layers", "_uniform"): "uniform_parameter",
    ("evaluation.flight", "_options"): "policy_option",
    ("envs.frames", "SIDE_IN"): "FRAME_SIDE_IN",
    ("envs.frames", "TITLE_IN"): "FRAME_TITLE_IN",
    ("envs.frames", "GAP_IN"): "FRAME_GAP_IN",
    ("envs.frames", "DPI"): "FRAME_DPI",
    ("models.demd", "_finished"): "_demd_finished",
    ("evaluation.beyond", "_add"): "_add_beyond",
    ("evaluation.sensing_figure", "PANEL_IN"): "SENSING_PANEL_IN",
    ("evaluation.neighbors_figure", "PANEL_IN"): "NEIGHBORS_PANEL_IN",
}

# Top-level statements that disappear: re-exports and lists of them.
DROP = {("evaluation.figures", "__all__"), ("models.weights", "__all__")}

# Statements that two new modules need: target -> [(old module, symbol)].
COPIES = {"methods.controller": [("experts.pools", "log")]}

# New package __init__ files that no old one becomes.
NEW_PACKAGES = {
    "render": '"""How things look: colors and panels, tables, the swarm seen from above, animations."""\n',
    "learning": '"""What trainings share: the run folder, the log, networks (torch; extra `learn`)."""\n',
    "methods.gcn_planners": (
        '"""CR-MGC and DEMD: planners with graph convolutions, optimized for each case (METHODS 3.4, 3.5)."""\n\n'
        "from phygail.methods.gcn_planners.cr_mgc import CrMgc\nfrom phygail.methods.gcn_planners.demd import Demd\n\n"
        '__all__ = ["CrMgc", "Demd"]\n'
    ),
}
# Old package __init__ files that disappear.
GONE = {"models", "training"}

# Test files that do not follow from their module's name.
TEST_FILES = {
    "tests/test_groups.py": "tests/swarm/test_links_groups.py",
    "tests/test_tensors.py": "tests/test_weights.py",
    "tests/evaluation/test_engines.py": "tests/experiments/test_engine.py",
    "tests/evaluation/test_figures.py": "tests/render/test_scene.py",
    "tests/perception/test_graph_batch.py": "tests/methods/phygail/test_graph_batch.py",
    "tests/methods/test_phygail.py": "tests/methods/reach_evolved/test_reach_evolved.py",
    "tests/methods/test_policy.py": "tests/methods/phygail/test_phygail.py",
    "tests/models/test_layers.py": "tests/learning/test_networks_layers.py",
    "tests/evaluation/test_one_flight.py": "tests/test_one_flight.py",
    "tests/training/conftest.py": "tests/methods/phygail/conftest.py",
}

# Hand edits after the move: file -> [(old, new)].
PATCHES = {
    "src/phygail/learning/run.py": [
        (
            "    for field in fields(config):\n        known.add(field.name, getattr(config, field.name))\n",
            "    for entry in fields(config):\n        known.add(entry.name, getattr(config, entry.name))\n",
        ),
    ],
    "src/phygail/learning/networks.py": [
        (
            "generator: torch.Generator | None) -> nn.Parameter:\n",
            'generator: torch.Generator | None) -> nn.Parameter:\n    """A parameter with entries drawn from (-bound, bound)."""\n',
        ),
    ],
    "src/phygail/methods/controller.py": [
        (
            "def policy_option(name: str, policy: Path | None) -> dict[str, Any]:\n",
            'def policy_option(name: str, policy: Path | None) -> dict[str, Any]:\n    """The keyword with which a method takes the user\'s policy file, if it takes one."""\n',
        ),
    ],
    "tests/cli/test_reproduce.py": [("phygail.experiments.reproduce.make_method", "phygail.methods.base.make_method")],
}

# Files that show old imports on purpose.
FROZEN = {"test_old_imports.py"}
PATCHES["src/phygail/__init__.py"] = [
    (
        "import importlib\nfrom typing import TYPE_CHECKING, Any\n",
        "import importlib\nimport sys\nfrom typing import TYPE_CHECKING, Any\n",
    ),
    (
        "if TYPE_CHECKING:\n",
        "if TYPE_CHECKING:\n    from collections.abc import Sequence\n    from importlib.machinery import ModuleSpec\n    from types import ModuleType\n\n",
    ),
    (
        "def __dir__() -> list[str]:\n    return sorted(__all__)\n",
        """def __dir__() -> list[str]:
    return sorted(__all__)


class _OldPlaces:
    \"\"\"Asked last, about modules below phygail that nobody else finds: they may have moved (`phygail._moved`).\"\"\"

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("phygail."):
            return None
        from phygail._moved import find_moved

        return find_moved(name)


sys.meta_path.append(_OldPlaces)
""",
    ),
]

PATCHES["docs/extending.md"] = [("(`experiments/catalog.py`, `experiments/catalog.py`)", "(`experiments/catalog.py`)")]
PATCHES["CONTRIBUTING.md"] = [
    (
        """A room imports only rooms above it (`tests/test_layers.py` asserts it):

    config registry rng files    constants with units, one registry per kind, seeded generators, whole files
    groups tensors               sums and means by group, weight files
    swarm/        the world: layouts, damage, links, the one simulator step, safety, scenarios, metrics, bound
    perception/   what a method may know: views of three scopes
    models/       networks (torch; extra `learn`)
    methods/      one method per file
    experts/      demonstrations: the fastest flight of several methods on each scenario
    training/     how the learned methods are made
    evaluation/   grid -> one raw row per episode -> summary -> tables and figures
    envs/         the world as a PettingZoo environment
    cli/          one file per command
""",
        """The house is cut by method: a method is a file, a learned method a folder that holds everything about it (what flies, network,
training, export). A room imports only what stands above it here, and method folders never import each other
(`tests/test_layers.py` asserts it):

    config registry rng files weights   constants with units, one registry per kind, seeded generators, whole files, weight files
    swarm/        the world: layouts, damage, links, the one simulator step, safety, scenarios, metrics, bound
    sensing/      what a UAV may know: views of three scopes, imperfect sensing
    render/       how things look: style, tables, the swarm from above, animations
    methods/*.py  rules, and what methods share: base, controller, steering, planning
    learning/     what trainings share: run, log, networks (torch; extra `learn`)
    methods/*/    learned methods and planners: phygail (the paper), reach_evolved, gcn_planners (CR-MGC, DEMD), gdr_ts, cr_ma, convex
    experiments/  grid -> one raw row per episode -> statistics -> tables and figures
    envs/         the world as a PettingZoo environment
    cli/          one file per command

`tests/` mirrors the tree. `benchmarks/files_per_question.py` counts how many files a question leads to. Imports of version 0.1.0 work
until 0.3.0 (`phygail/_moved.py` leads them to the new place).
""",
    ),
    (
        "Write a class as in the docstring of `phygail/methods/base.py`, decorate it with `@register`, and pass the file with",
        "Write a class as in the docstring of `phygail/methods/base.py`, decorate it with `@register`, and pass the file with",
    ),
]
