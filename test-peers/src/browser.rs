//! A genuine browser without a display, driven by WebDriver.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser under WebDriver.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts it with a profile of its own, made in a folder; `None` where there is no chromedriver, see [`skip`](crate::skip).
    ///
    /// # Panics
    /// If it does not start, or is missing and required.
    #[must_use]
    #[track_caller]
    pub fn start(folder: &Path) -> Option<Self> {
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else {
            crate::skip("there is no chromedriver");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port = lines
            .find_map(|line| line.ok()?.rsplit_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // Its pipe is read to the end, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.expect("chromedriver says its port");
        let mut browser = Self { driver, port, session: String::new() };
        let data = format!("--user-data-dir={}", folder.join("profile").display());
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            // Of tests' servers.
            "--ignore-certificate-errors",
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": flags}}}});
        let session = browser.ask("POST", "/session", &wanted);
        browser.session = format!("/session/{}", session["sessionId"].as_str().expect("a session has an id"));
        Some(browser)
    }

    /// Loads a page.
    ///
    /// # Panics
    /// If the browser refuses.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.ask("POST", &format!("{}/url", self.session), &json!({"url": url}));
    }

    /// Runs a script and returns its result.
    ///
    /// # Panics
    /// If it throws.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.ask("POST", &format!("{}/execute/sync", self.session), &json!({"script": script, "args": []}))
    }

    /// Waits until a script's text has this in it.
    ///
    /// # Panics
    /// If it has not within half a minute.
    #[track_caller]
    pub fn wait(&self, script: &str, expected: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let value = self.run(script);
            let text = value.as_str().unwrap_or_default();
            if text.contains(expected) {
                return;
            }
            assert!(Instant::now() < deadline, "{script}: {value}, not {expected}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and releases keys one after another; those without a character have WebDriver's private code points.
    ///
    /// # Panics
    /// If the browser refuses.
    #[track_caller]
    pub fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key})));
        let strokes: Vec<_> = strokes.collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]});
        self.ask("POST", &format!("{}/actions", self.session), &actions);
    }

    /// Shows the window in this size, in CSS pixels, to pages that ask for light or dark colours.
    ///
    /// # Panics
    /// If the browser refuses.
    #[track_caller]
    pub fn appear(&self, width: u32, height: u32, scheme: &str) {
        let command = |cmd: &str, params: Value| {
            self.ask("POST", &format!("{}/goog/cdp/execute", self.session), &json!({"cmd": cmd, "params": params}));
        };
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        command("Emulation.setDeviceMetricsOverride", size);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        command("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// The view as a PNG, in base64.
    ///
    /// # Panics
    /// If the browser refuses.
    #[must_use]
    #[track_caller]
    pub fn screenshot(&self) -> String {
        let picture = self.ask("GET", &format!("{}/screenshot", self.session), &json!({}));
        picture.as_str().expect("a picture is a text").to_owned()
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (head, body) = self.exchange(method, path, body).expect("chromedriver answers");
        let value: Value = serde_json::from_slice(&body).expect("chromedriver answers in JSON");
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {value}");
        value["value"].clone()
    }

    /// The head and the body of the driver's answer.
    fn exchange(&self, method: &str, path: &str, body: &Value) -> io::Result<(String, Vec<u8>)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let body = body.to_string();
        let len = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes())?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        // The driver leaves the connection open.
        let mut reader = BufReader::new(stream);
        let (mut head, mut len) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        for line in head.lines() {
            if let Some((_, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                len = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body)?;
        Ok((head, body))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser, also of a test that has failed: without its driver it would run on.
        if !self.session.is_empty() {
            let _ = self.exchange("DELETE", &self.session, &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
