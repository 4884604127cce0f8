//! Genuine clients, each language's by its package client.

use test_peers::{Kit, kit};

/// grpc-go: our client, grpcurl, grpc_health_probe, the interop client; the definition is compiled by Go's own plugins.
pub(super) const GO: Kit = kit! {
    name: "grpc-go",
    sources: &["tests/peers/go", "proto/helloworld.proto"],
    programs: &["go", "protoc"],
    install: "export PATH=\"$PWD/bin:$PATH\" && mkdir bin helloworld && \
        go build -o bin/ google.golang.org/grpc/cmd/protoc-gen-go-grpc google.golang.org/protobuf/cmd/protoc-gen-go && \
        protoc --go_out=. --go_opt=module=peers,Mhelloworld.proto=peers/helloworld \
        --go-grpc_out=. --go-grpc_opt=module=peers,Mhelloworld.proto=peers/helloworld helloworld.proto && \
        go build -o bin/ . github.com/fullstorydev/grpcurl/cmd/grpcurl \
        github.com/grpc-ecosystem/grpc-health-probe google.golang.org/grpc/interop/client",
};

/// ghz and h2spec, which are older than today's grpc-go: each with the versions that it was released with.
pub(super) const GO_TOOLS: Kit = kit! {
    name: "grpc-go-tools",
    sources: &[],
    programs: &["go"],
    install: "export GOBIN=\"$PWD/bin\" && go install github.com/bojand/ghz/cmd/ghz@v0.93.0 && \
        go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
};

/// The conformance suite of Connect's makers.
pub(super) const CONFORMANCE: Kit = kit! {
    name: "connect-conformance",
    sources: &["tests/peers/conformance"],
    programs: &["go"],
    install: "GOBIN=\"$PWD/bin\" go install connectrpc.com/conformance/cmd/connectconformance@v1.0.7",
};

/// connect-go.
pub(super) const CONNECT: Kit = kit! {
    name: "grpc-connect",
    sources: &["tests/peers/connect"],
    programs: &["go"],
    install: "go build .",
};

pub(super) const PYTHON: Kit = kit! {
    name: "grpc-python",
    sources: &["tests/peers/python", "proto/helloworld.proto"],
    programs: &["python3"],
    install: "python3 -m venv venv && \
        venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt && \
        venv/bin/python -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. helloworld.proto",
};

pub(super) const JS: Kit = kit! {
    name: "grpc-js",
    sources: &["tests/peers/js", "proto/helloworld.proto"],
    programs: &["node", "npm"],
    install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error",
};

/// grpc-java; its plugin of the compiler comes from where its libraries do.
pub(super) const JAVA: Kit = kit! {
    name: "grpc-java",
    sources: &["tests/peers/java", "proto/helloworld.proto"],
    programs: &["javac", "mvn"],
    install: "mvn --batch-mode --quiet package dependency:copy-dependencies -DoutputDirectory=lib",
};

/// A page on connect-web.
pub(super) const WEB: Kit = kit! {
    name: "grpc-web",
    sources: &["tests/peers/web", "proto/helloworld.proto"],
    programs: &["node", "npm", "protoc"],
    install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error && \
        protoc --plugin=node_modules/.bin/protoc-gen-es --es_out=. --es_opt=target=js helloworld.proto && \
        node_modules/.bin/esbuild page.js --bundle --format=esm --outfile=bundle.js --log-level=warning",
};
