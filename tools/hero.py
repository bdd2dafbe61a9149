"""The README's picture: eight seconds of the demo, filmed in headless Chromium.

``PYTHONPATH=. python tools/hero.py results/demo.gif``. First one flight that is asked for 100, the
first of the page's own flights that obtains 85 to 115; then one flight for each of many returns,
none left out. The program prints which flight that was.
"""

import base64
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.chromium import Chromium  # noqa: E402

from lightning_rl.lab.demo.page import page  # noqa: E402

WIDTH, HEIGHT, DENSE, COLOURS, MILLISECONDS = 500, 330, 1.44, 64, 80
FIRST, SWEPT, LAST = 36, 60, 2500  # frames, frames, milliseconds of the last one
LOOK = """
  html { font-size: 16px }
  body { overflow: hidden }
  header, footer, .choice, .buttons, .legend, .scene figcaption { display: none !important }
  main { padding: 8px; gap: 8px; grid-template: "control control" "scene plot" / 11fr 10fr }
  .control { padding: 4px 14px }
  .command { grid-template: "label slider" "value slider" / auto 1fr }
  .control label { font-size: 1rem }
  #scene { aspect-ratio: auto; height: 242px }
  #plot { height: 0; min-height: 190px; aspect-ratio: auto; flex: 1 }
  figcaption { padding: 4px 10px; font-size: 0.85rem; line-height: 1.25; height: 48px }
"""
SETUP = f"""(() => {{
  document.head.append(Object.assign(document.createElement("style"), {{ textContent: `{LOOK}` }}));
  setPause(true);
  colours["sky-low"] = colours["sky-top"]; // a gradient would be bands
  ask(100);
  const returns = [];
  do {{
    begin();
    while (!demo.task.over) step();
    returns.push(demo.task.total);
  }} while (Math.abs(returns.at(-1) - 100) > 15);
  const steps = demo.task.steps;
  demo.episodes = [];
  demo.number -= 1;
  begin();
  summarise();
  return [returns, steps];
}})()"""
DRAW = 'drawScene(); drawPlot($("plot"), demo); 0'


def main(out: Path) -> None:
    """Films the page and writes a GIF."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "demo.html")
        file.write_text(page(["obedient-lunarlander"]))
        with Chromium(Path(folder, "profile"), (WIDTH, HEIGHT)) as tab:
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": DENSE, "mobile": False}
            tab.call("Emulation.setDeviceMetricsOverride", **size)
            tab.open(file, "typeof demo === 'object' && demo.number >= 1")
            returns, steps = tab.run(SETUP)
            print(f"flight {len(returns)} of {len(returns)} asked for 100: {returns[-1]:.0f}")
            frames = []
            for number in range(FIRST):
                until = round(steps * (number + 1) / FIRST)
                tab.run(f"while (!demo.task.over && demo.task.steps < {until}) step(); {DRAW}")
                frames.append(shot(tab))
            for _ in range(SWEPT):
                tab.run("demo.sweeping = true; next(); while (!demo.task.over) step(); 0")
                tab.run(DRAW)
                frames.append(shot(tab))
    write(frames, out)


def shot(tab: Chromium) -> Image.Image:
    """What the tab shows."""
    data = tab.call("Page.captureScreenshot", format="png")["data"]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def write(frames: list[Image.Image], out: Path) -> None:
    """A GIF of them, all of one palette."""
    palette = frames[-1].quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE
    )
    shown = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    durations = [MILLISECONDS] * (len(shown) - 1) + [LAST]
    shown[0].save(
        out, save_all=True, append_images=shown[1:], duration=durations, loop=0, optimize=True
    )
    print(f"{out}: {out.stat().st_size:,} bytes, {sum(durations) / 1000:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
