"""Results CSVs: rows survive a kill, half a row does not, and tables are not mixed."""

import subprocess

import pytest

from lightning_rl.core.errors import UserError
from lightning_rl.lab.protocols.results import open_results

COLUMNS, KEY = ("name", "number", "value", "returns"), ("name", "number")


def row(number, value):
    return {"name": "a, b", "number": number, "value": value, "returns": [1.0, 2.5]}


def test_rows_are_there_again_and_half_a_row_is_cut_off(tmp_path):
    path = tmp_path / "deep" / "r.csv"
    with open_results(path, COLUMNS, KEY) as results:
        assert not results.has(name="a, b", number=0)
        results.add([row(0, 0.1234567), row(1, 3.0)])
    whole = path.read_text()
    assert whole == 'name,number,value,returns\n"a, b",0,0.123457,1 2.5\n"a, b",1,3,1 2.5\n'
    path.write_text(whole + '"a, b",2,7')
    with open_results(path, COLUMNS, KEY) as results:
        assert [line["value"] for line in results.rows] == ["0.123457"]
        assert results.has(name="a, b", number=0)
        assert not results.has(name="a, b", number=1)  # other rows of it may be lost
        assert not results.has(name="a, b", number=2)
        results.add([row(1, 3.0), row(2, -1.0)])
        assert results.has(name="a, b", number=2)
    assert path.read_text() == whole + '"a, b",2,-1,1 2.5\n'


def test_of_rows_that_were_added_in_one_go_all_are_there_or_none(tmp_path):
    path = tmp_path / "r.csv"
    with open_results(path, COLUMNS, KEY) as results:
        results.add([row(0, 0.5), row(0, 0.75)])
        first = path.read_text()
        results.add([row(1, 1.0), row(1, 2.0), row(1, 3.0)])
    whole = path.read_text()
    for length in range(len(first), len(whole)):
        path.write_text(whole[:length])
        if whole[length - 1] == "\n":
            continue  # nothing tells that there was more
        with open_results(path, COLUMNS, KEY) as results:
            assert not results.has(name="a, b", number=1)
            if not results.has(name="a, b", number=0):
                results.add([row(0, 0.5), row(0, 0.75)])
            results.add([row(1, 1.0), row(1, 2.0), row(1, 3.0)])
        assert path.read_text() == whole
    # by another program, which quotes otherwise
    path.write_text(whole.replace(",0.75,", ',"0.75",') + "begun")
    with open_results(path, COLUMNS, KEY) as results:
        assert len(results.rows) == 5


def test_a_start_that_was_killed_or_had_no_room_leaves_nothing_behind(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, theirs = tmp_path / f".r.csv.{gone.pid}.tmp", tmp_path / f".s.csv.{gone.pid}.tmp"
    left.write_text("name,num")
    theirs.write_text("mine")
    for name in ("r.csv", "s.csv"):
        with open_results(tmp_path / name, COLUMNS, KEY) as results:
            results.add([row(0, 1.0)])
    assert not left.exists()
    assert theirs.read_text() == "mine"
    with pytest.raises(UserError, match="disk"), open_results(tmp_path / "t.csv", COLUMNS, KEY):
        raise UserError("the disk is full")
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == ["r.csv", "s.csv"]


@pytest.mark.parametrize("cell", ["abc", "", "1e400", "nan"])
def test_a_damaged_cell_is_found_before_the_work(tmp_path, cell):
    path = tmp_path / "r.csv"
    path.write_text(f"n,return_mean\n1,2\n2,{cell}\n")
    with (
        pytest.raises(
            UserError,
            match=r"row 3, column return_mean: .*no.* finite number; mend the row or name another "
            r"CSV",
        ),
        open_results(path, ("n", "return_mean"), ("n",)),
    ):
        pass


def test_another_table_and_a_second_process_are_refused(tmp_path):
    path = tmp_path / "r.csv"
    refused = pytest.raises(
        UserError, match="in use by another process; wait until it has ended, or name another CSV"
    )
    with open_results(path, COLUMNS, KEY), refused, open_results(path, COLUMNS, KEY):
        pass
    with (
        pytest.raises(UserError, match="begins with 'name,number,value,returns', not with"),
        open_results(path, KEY, KEY),
    ):
        pass
    with (
        pytest.raises(UserError, match="cannot write to"),
        open_results(path / "below", COLUMNS, KEY),
    ):
        pass
