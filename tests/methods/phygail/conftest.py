import pytest


@pytest.fixture(scope="session")
def make_database():
    """Writes demonstrations by SIDR on swarms of 20 to a file: (path, damage ratio, cases)."""
    pytest.importorskip("h5py")
    from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
    from phygail.methods.phygail.experts.recipe import Recipe, demonstrate

    def make(path, damage, cases):
        recipe = Recipe("toy", ("sidr",), damage=(damage,), cases=cases)
        packed = [pack(demonstrate(recipe, number)) for number in range(len(recipe))]
        write_archive(path, concatenate(packed), recipe.config(), {})
        return path

    return make


@pytest.fixture(scope="module")
def database(make_database, tmp_path_factory):
    """Three demonstrations with half of the swarm lost."""
    return make_database(tmp_path_factory.mktemp("experts") / "toy.h5", 0.5, 3)
