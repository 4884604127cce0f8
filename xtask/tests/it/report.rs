//! REPORT.md as who reads it sees it: rendered by a Markdown viewer's library, in a real browser.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use test_peers::{chromium, kit, printed};

/// As GitHub shows a file on a wide screen.
const WIDTH: usize = 1012;
/// The part of a page that a reader sees without scrolling.
const FIRST_SCREEN: f64 = 800.0;
/// Of a plot's marks of one colour: a bar is a line of two pixels, a few dozen long.
const PIXELS: usize = 20;

/// Where things lie that the page consists of: measured by the page itself, once its pictures are there.
const MEASURE: &str = r#"<script>
addEventListener("load", () => {
    const place = (element) => {
        const { x, y, width, height } = element.getBoundingClientRect();
        return { x, y, width, height, loaded: element.naturalWidth > 0 };
    };
    const places = (selector) => [...document.querySelectorAll(selector)].map(place);
    document.body.dataset.seen = JSON.stringify({
        wide: document.documentElement.scrollWidth,
        high: document.documentElement.scrollHeight,
        images: places("img"), tables: places("table"), headings: places("h2"), paragraphs: places("p"),
    });
});
</script>"#;

/// The rules of GitHub's style sheet that say how wide things are.
const STYLE: &str = "body { font: 16px/1.5 sans-serif; margin: 0; padding: 32px; } img { max-width: 100%; }
    table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; }
    th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }";

#[derive(Debug, Deserialize)]
struct Seen {
    wide: f64,
    high: f64,
    images: Vec<Place>,
    tables: Vec<Place>,
    headings: Vec<Place>,
    paragraphs: Vec<Place>,
}

/// In pixels from the page's left and upper edges.
#[derive(Debug, Deserialize)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// A picture that could be read.
    loaded: bool,
}

#[test]
fn the_report_in_a_browser() {
    let viewer = kit! {
        name: "viewer",
        programs: &["node", "npm", "chromium"],
        sources: &["tests/viewer"],
        install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error",
    };
    let Some(viewer) = viewer.installed() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let markdown = fs::read_to_string(root.join("REPORT.md")).unwrap();
    let plots = markdown.matches("![Ratios of ").count();
    assert!(plots >= 6, "{plots} plots");
    // The answer to "is Rust slow?" stands in the first ten lines.
    let first: Vec<&str> = markdown.lines().take(10).collect();
    assert!(first.iter().any(|line| line.contains("Is Rust slow? ")), "{first:?}");

    let mut marked = Command::new("node");
    marked
        .args(["--eval", "console.log(require('marked').parse(require('fs').readFileSync(process.argv[1], 'utf8')))"]);
    let body = printed(marked.arg(root.join("REPORT.md")).current_dir(&viewer));
    let page = viewer.join("report.html");
    let base = format!("<base href=\"file://{}/\">", root.display());
    fs::write(&page, format!("<!doctype html><meta charset=utf-8>{base}<style>{STYLE}</style>{MEASURE}<body>{body}"))
        .unwrap();

    let seen = look(&viewer, &page);
    assert!(seen.wide <= WIDTH as f64, "it is wider than its window: {seen:?}");
    assert_eq!(seen.images.len(), plots);
    assert!(seen.images.iter().all(|image| image.loaded && image.width > 900.0), "{:?}", seen.images);
    // The front table and one of verdicts for each finding: none wants scrolling to the side.
    assert!(seen.tables.len() > plots && seen.headings.len() >= plots, "{seen:?}");
    let answer = &seen.paragraphs[0];
    let front = &seen.tables[0];
    assert!(answer.y + answer.height < FIRST_SCREEN && front.y + front.height < FIRST_SCREEN, "{answer:?} {front:?}");

    // Taken whole: each plot shows the colours of verdicts, in either scheme.
    for (scheme, ground, marks) in [
        (1, [0xff, 0xff, 0xff], [[0x2b, 0x8a, 0x3e], [0xc8, 0x50, 0x1e], [0xa8, 0x79, 0x00], [0x5b, 0x65, 0x70]]),
        (0, [0x15, 0x18, 0x1c], [[0x6a, 0xcf, 0x7d], [0xff, 0x94, 0x66], [0xe3, 0xb3, 0x41], [0x9a, 0xa4, 0xaf]]),
    ] {
        let picture = Picture::of(&viewer, &page, scheme, seen.high as usize);
        for image in &seen.images {
            let count = |colour| picture.count(image, colour);
            let of_marks: Vec<usize> = marks.into_iter().map(count).collect();
            let area = (image.width * image.height) as usize;
            assert!(count(ground) > area / 2, "scheme {scheme}: {image:?} is {} pixels of ground", count(ground));
            assert!(of_marks.iter().any(|count| *count > PIXELS), "scheme {scheme}: {image:?} shows {of_marks:?}");
        }
    }
}

fn address(page: &Path) -> String {
    format!("file://{}", page.display())
}

/// The measurements that the page reports of itself.
fn look(folder: &Path, page: &Path) -> Seen {
    let window = format!("--window-size={WIDTH},{FIRST_SCREEN}");
    let dom = printed(chromium(folder).args([&window, "--hide-scrollbars", "--dump-dom", &address(page)]));
    let seen = dom.split_once("data-seen=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(seen, _)| seen);
    let seen = seen.unwrap_or_else(|| panic!("the page has not been measured: {dom}")).replace("&quot;", "\"");
    serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}"))
}

/// Red, green and blue of every pixel of a page.
struct Picture {
    pixels: Vec<[u8; 3]>,
    width: usize,
}

impl Picture {
    /// In light (1) or in dark (0).
    fn of(folder: &Path, page: &Path, scheme: u8, high: usize) -> Self {
        let path: PathBuf = folder.join(format!("report-{scheme}.png"));
        let mut browser = chromium(folder);
        browser.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
        browser.args([&format!("--window-size={WIDTH},{high}"), "--hide-scrollbars"]);
        let _ = printed(browser.arg(format!("--screenshot={}", path.display())).arg(address(page)));
        let mut reader = png::Decoder::new(BufReader::new(File::open(&path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut bytes).unwrap();
        let samples = frame.color_type.samples();
        assert!(frame.bit_depth == png::BitDepth::Eight && samples >= 3);
        let pixels = bytes[..frame.buffer_size()].chunks_exact(samples).map(|pixel| [pixel[0], pixel[1], pixel[2]]);
        if let Some(kept) = std::env::var_os("KEEP_SCREENSHOTS") {
            fs::copy(&path, Path::new(&kept).join(format!("report-{scheme}.png"))).unwrap();
        }
        Self { pixels: pixels.collect(), width: frame.width as usize }
    }

    /// Pixels of just this colour within a place.
    fn count(&self, place: &Place, colour: [u8; 3]) -> usize {
        let rows = self.pixels.chunks_exact(self.width).skip(place.y as usize).take(place.height as usize);
        let pixels = rows.flat_map(|row| row.iter().skip(place.x as usize).take(place.width as usize));
        pixels.filter(|pixel| **pixel == colour).count()
    }
}
