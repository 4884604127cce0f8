//! Fetching genuine clients, each language's by its package client: once, below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::skip;

/// What is fetched and built together.
pub(super) struct Kit {
    /// A folder below `tests/peers`.
    name: &'static str,
    /// What must be installed.
    programs: &'static [&'static str],
    /// Fetches and builds, in a copy of the folder with `helloworld.proto`; done again when a file of it has changed.
    install: &'static str,
}

/// grpc-go: our client, grpcurl, grpc_health_probe, the interop client; the definition is compiled by Go's own plugins.
pub(super) const GO: Kit = Kit {
    name: "go",
    programs: &["go", "protoc"],
    install: "export PATH=\"$PWD/bin:$PATH\" && mkdir bin helloworld && \
        go build -o bin/ google.golang.org/grpc/cmd/protoc-gen-go-grpc google.golang.org/protobuf/cmd/protoc-gen-go && \
        protoc --go_out=. --go_opt=module=peers,Mhelloworld.proto=peers/helloworld \
        --go-grpc_out=. --go-grpc_opt=module=peers,Mhelloworld.proto=peers/helloworld helloworld.proto && \
        go build -o bin/ . github.com/fullstorydev/grpcurl/cmd/grpcurl \
        github.com/grpc-ecosystem/grpc-health-probe google.golang.org/grpc/interop/client",
};

/// ghz and h2spec, which are older than today's grpc-go: each with the versions that it was released with.
pub(super) const GO_TOOLS: Kit = Kit {
    name: "go-tools",
    programs: &["go"],
    install: "export GOBIN=\"$PWD/bin\" && go install github.com/bojand/ghz/cmd/ghz@v0.93.0 && \
        go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
};

pub(super) const PYTHON: Kit = Kit {
    name: "python",
    programs: &["python3"],
    install: "python3 -m venv venv && \
        venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt && \
        venv/bin/python -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. helloworld.proto",
};

pub(super) const JS: Kit = Kit {
    name: "js",
    programs: &["node", "npm"],
    install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error",
};

/// One at a time: several tests want the same kit.
static INSTALLING: Mutex<()> = Mutex::new(());

impl Kit {
    /// The folder with everything in it.
    pub(super) fn installed(&self) -> Option<PathBuf> {
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(missing) = self.programs.iter().find(|program| !is_there(program)) {
            skip(&format!("there is no {missing}"));
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers").join(self.name);
        let files = self.files();
        let unchanged = |file: &PathBuf| {
            fs::read(folder.join(file.file_name().unwrap())).is_ok_and(|copy| copy == fs::read(file).unwrap())
        };
        // What was installed by another command is not what is asked for.
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|by| by == self.install) && files.iter().all(unchanged) {
            return Some(folder);
        }
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for file in &files {
            fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
        // Five minutes: Go compiles its libraries, and registries may be slow.
        let mut install = Command::new("timeout");
        install.args(["300", "sh", "-c", &format!("exec 2>&1; {}", self.install)]);
        let output = install.current_dir(&folder).output().unwrap();
        if !output.status.success() {
            skip(&format!("{} cannot be installed: {}", self.name, String::from_utf8_lossy(&output.stdout)));
            return None;
        }
        fs::write(stamp, self.install).unwrap();
        Some(folder)
    }

    /// The kit's own files, if it has any, and the definition.
    fn files(&self) -> Vec<PathBuf> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = fs::read_dir(here.join("tests/peers").join(self.name)).into_iter().flatten();
        own.map(|entry| entry.unwrap().path()).chain([here.join("proto/helloworld.proto")]).collect()
    }
}

fn is_there(program: &str) -> bool {
    Command::new("sh").arg("-c").arg("command -v \"$0\"").arg(program).output().unwrap().status.success()
}
