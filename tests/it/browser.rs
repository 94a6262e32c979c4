//! Headless Chromium, controlled through the `DevTools` protocol over two pipes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// Upper bound for any operation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Chromium reads commands from descriptor 3 and replies on descriptor 4.
const START: &str = r#"exec chromium --headless=new --no-sandbox --disable-gpu \
    --disable-dev-shm-usage --no-first-run --user-data-dir="$0" --remote-debugging-pipe \
    about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#;

/// A browser with one page. It ends with the test.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    session: Option<String>,
    last: u64,
    /// Messages that are not replies to a command.
    events: Vec<Value>,
}

impl Browser {
    /// Opens a page with a window of this size. `scheme` is `light` or `dark`.
    pub(super) async fn open(url: &str, (width, height): (u32, u32), scheme: &str) -> Self {
        // Tests that run in one process must not share a profile.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let name = format!("chromium-{}-{number}", std::process::id());
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut child = Command::new("sh")
            .args(["-c", START])
            .arg(&profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            to,
            from: BufReader::new(from),
            profile,
            session: None,
            last: 0,
            events: Vec::new(),
        };
        let blank = json!({ "url": "about:blank" });
        let target = browser.call("Target.createTarget", blank).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach).await;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 600 });
        browser
            .call("Emulation.setDeviceMetricsOverride", size)
            .await;
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        let media = json!({ "features": features });
        browser.call("Emulation.setEmulatedMedia", media).await;
        browser.call("Page.navigate", json!({ "url": url })).await;
        browser.until("document.readyState === 'complete'").await;
        browser
    }

    /// Sends a command. Returns the result.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = timeout(PATIENCE, self.send_and_receive(method, params)).await;
        answer.unwrap_or_else(|_| panic!("{method} has no reply"))
    }

    async fn send_and_receive(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let message = format!("{message}\0");
        let sent = self.to.write_all(message.as_bytes()).await;
        sent.expect("chromium is not installed: `apt-get install chromium`");
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).await.unwrap();
            assert!(
                !answer.is_empty(),
                "chromium is not installed: `apt-get install chromium`"
            );
            let mut answer: Value = serde_json::from_slice(&answer[..answer.len() - 1]).unwrap();
            if answer["id"] == self.last {
                assert_eq!(answer.get("error"), None, "{method}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Evaluates an expression on the page. Returns its value.
    pub(super) async fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", params).await;
        assert_eq!(answer.get("exceptionDetails"), None, "{expression}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&mut self, expression: &str) {
        let is_true = async {
            while self.value(expression).await != json!(true) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        if timeout(PATIENCE, is_true).await.is_err() {
            let page = self.value("document.body.innerText").await;
            panic!("never true: {expression} in\n{page}");
        }
    }

    /// Returns the text of an element.
    pub(super) async fn text(&mut self, selector: &str) -> String {
        let text = format!("document.querySelector({selector:?}).innerText");
        let text = self.value(&text).await;
        text.as_str().unwrap().replace('\u{a0}', " ")
    }

    /// Waits until the text of an element contains `text`.
    pub(super) async fn until_shows(&mut self, selector: &str, text: &str) {
        self.until(&format!(
            "(document.querySelector({selector:?})?.innerText ?? '').replaceAll('\\u00a0', ' ').replace(/[\\u2068\\u2069]/g, '').includes({text:?})"
        ))
        .await;
    }

    /// Signs in at the dashboard, and waits until all of it is loaded and the layout is stable.
    pub(super) async fn sign_in(&mut self, token: &str) {
        self.until("!document.querySelector('#sign-in').hidden")
            .await;
        self.write("#token", token).await;
        self.press("Enter").await;
        self.until_shows("#pulse", "Live").await;
        self.until_shows("#rules", "global").await;
        self.until("document.querySelector('#overrides').innerText !== ''")
            .await;
    }

    /// Clicks on the middle of an element. Waits until it no longer moves and no other element covers it.
    pub(super) async fn click(&mut self, selector: &str) {
        let find = format!(
            "(() => {{ const it = document.querySelector({selector:?}); if (!it) return null; \
             it.scrollIntoView({{ block: 'center' }}); const at = it.getBoundingClientRect(); \
             const [x, y] = [at.x + at.width / 2, at.y + at.height / 2]; \
             return it.contains(document.elementFromPoint(x, y)) ? [x, y] : null; }})()"
        );
        let stable = async {
            let mut before = Value::Null;
            loop {
                let point = self.value(&find).await;
                if !point.is_null() && point == before {
                    break point;
                }
                before = point;
                sleep(Duration::from_millis(50)).await;
            }
        };
        let point = timeout(PATIENCE, stable).await;
        let point = point.unwrap_or_else(|_| panic!("{selector} cannot be clicked on"));
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({ "type": kind, "x": point[0], "y": point[1], "button": "left",
                "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", params).await;
        }
    }

    /// Replaces the text of a field.
    pub(super) async fn write(&mut self, selector: &str, text: &str) {
        self.click(selector).await;
        let field = format!("document.querySelector({selector:?})");
        self.until(&format!("document.activeElement === {field}"))
            .await;
        self.value(&format!("{field}.select()")).await;
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    pub(super) async fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({ "type": kind, "key": key, "code": key });
            if (kind, key) == ("keyDown", "Enter") {
                params["text"] = json!("\r");
            }
            let code = match key {
                "Tab" => 9,
                "Enter" => 13,
                "ArrowLeft" => 37,
                _ => 0,
            };
            params["windowsVirtualKeyCode"] = json!(code);
            self.call("Input.dispatchKeyEvent", params).await;
        }
    }

    /// Saves a screenshot of the whole page in the temporary directory of the tests.
    pub(super) async fn picture(&mut self, name: &str) {
        self.picture_of("html", name).await;
    }

    /// Saves a screenshot of an element with its surroundings.
    pub(super) async fn picture_of(&mut self, selector: &str, name: &str) {
        self.value("scrollTo(0, 0)").await;
        let clip = format!(
            "(() => {{ const at = document.querySelector({selector:?}).getBoundingClientRect(); \
             const [x, y] = [Math.max(0, at.x - 10), Math.max(0, at.y - 10)]; \
             return {{ x, y, width: at.right + 10 - x, height: at.bottom + 10 - y, scale: 1 }}; }})()"
        );
        let clip = self.value(&clip).await;
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.call("Page.captureScreenshot", params).await;
        let bytes = BASE64_STANDARD
            .decode(picture["data"].as_str().unwrap())
            .unwrap();
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Runs axe-core. Returns its serious and critical findings.
    pub(super) async fn accessibility_findings(&mut self) -> Vec<String> {
        // An evaluation is not subject to the CSP of the page.
        let params = json!({ "expression": include_str!("admin/axe/axe.min.js") });
        self.call("Runtime.evaluate", params).await;
        self.value(
            "window.findings = null; axe.run(document).then((result) => { \
             window.findings = result.violations \
             .filter((found) => ['serious', 'critical'].includes(found.impact)) \
             .map((found) => `${found.id}: ${found.nodes.map((node) => node.html).join(' ')}`); }); true",
        )
        .await;
        self.until("window.findings !== null").await;
        let findings = self.value("window.findings").await;
        let findings = findings.as_array().unwrap().iter();
        findings
            .map(|found| found.as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns whether the page fits into the width of the window.
    pub(super) async fn fits(&mut self) -> bool {
        let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        self.value(fits).await == json!(true)
    }

    /// Returns errors, warnings and CSP violations of the page.
    pub(super) fn complaints(&self) -> Vec<String> {
        let complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "info",
            _ => false,
        };
        let complaints = self.events.iter().filter(complaint);
        complaints
            .map(|event| event["params"].to_string())
            .collect()
    }

    /// Ends the browser and all processes that it has started.
    pub(super) async fn close(mut self) {
        self.session = None;
        let end = async {
            let _ = self
                .to
                .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0")
                .await;
            self.child.wait().await
        };
        if timeout(PATIENCE, end).await.is_err() {
            self.child.kill().await.unwrap();
        }
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
