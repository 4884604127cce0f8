//! REPORT.md and docs/performance as a reader sees them: rendered by a Markdown viewer's library, in a real browser.

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
        images: places("img"), tables: places("table"), lists: places("ul"), paragraphs: places("p"),
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
    lists: Vec<Place>,
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The documents of a folder, one below the other, as a page that measures itself.
fn page(viewer: &Path, name: &str, folder: &Path, documents: &[&str]) -> PathBuf {
    let script = "const { readFileSync } = require('fs'); const { parse } = require('marked');
        console.log(process.argv.slice(1).map((path) => parse(readFileSync(path, 'utf8'))).join(''))";
    let mut marked = Command::new("node");
    marked.args(["--eval", script]).args(documents.iter().map(|name| folder.join(name)));
    let body = printed(marked.current_dir(viewer));
    let page = viewer.join(name);
    let base = format!("<base href=\"file://{}/\">", folder.display());
    fs::write(&page, format!("<!doctype html><meta charset=utf-8>{base}<style>{STYLE}</style>{MEASURE}<body>{body}"))
        .unwrap();
    page
}

/// Both parts in one test: they share the browser's profile.
#[test]
fn the_report_in_a_browser() {
    let viewer = kit! {
        name: "viewer",
        programs: &["node", "npm", "chromium"],
        sources: &["tests/viewer"],
        install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error",
    };
    let Some(viewer) = viewer.installed() else { return };
    check_first_screen(&viewer);
    check_findings(&viewer);
}

fn check_first_screen(viewer: &Path) {
    let markdown = fs::read_to_string(root().join("REPORT.md")).unwrap();
    let first: Vec<&str> = markdown.lines().take(4).collect();
    assert!(first[0] == "# Is Rust slow?" && first[3].contains(" published comparisons"), "{first:?}");

    let seen = look(viewer, &page(viewer, "report.html", root(), &["REPORT.md"]));
    assert!(seen.wide <= WIDTH as f64, "it is wider than its window: {seen:?}");
    assert!(seen.images.is_empty() && seen.tables.len() == 1, "{seen:?}");
    // Answer, losses and front table.
    for place in [&seen.paragraphs[0], &seen.lists[0], &seen.tables[0]] {
        assert!(place.y + place.height < FIRST_SCREEN, "{place:?} is below the first screen: {seen:?}");
    }
}

fn check_findings(viewer: &Path) {
    let folder = root().join("docs/performance");
    let texts = look(viewer, &page(viewer, "texts.html", &folder, &["causes.md", "method.md"]));
    assert!(texts.wide <= WIDTH as f64 && texts.images.is_empty() && texts.tables.len() == 3, "{texts:?}");
    let names: Vec<String> = (1..=10).map(|number| format!("f{number}.md")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // The browser takes no picture that is much higher.
    for names in names.chunks(3) {
        let page = page(viewer, "findings.html", &folder, names);
        let seen = look(viewer, &page);
        assert!(seen.wide <= WIDTH as f64, "it is wider than its window: {seen:?}");
        assert_eq!(seen.images.len(), names.len());
        assert!(seen.images.iter().all(|image| image.loaded && image.width > 900.0), "{:?}", seen.images);
        // The published table and one of verdicts at least.
        assert!(seen.tables.len() >= 2 * names.len(), "{seen:?}");
        check_colours(viewer, &page, &seen);
    }
}

/// Taken whole: each plot shows the colours of verdicts, in either scheme.
fn check_colours(viewer: &Path, page: &Path, seen: &Seen) {
    for (scheme, ground, marks) in [
        (1, [0xff, 0xff, 0xff], [[0x2b, 0x8a, 0x3e], [0xc8, 0x50, 0x1e], [0xa8, 0x79, 0x00], [0x5b, 0x65, 0x70]]),
        (0, [0x15, 0x18, 0x1c], [[0x6a, 0xcf, 0x7d], [0xff, 0x94, 0x66], [0xe3, 0xb3, 0x41], [0x9a, 0xa4, 0xaf]]),
    ] {
        let picture = Picture::of(viewer, page, scheme, seen.high as usize);
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
