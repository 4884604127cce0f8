//! The command line.

use std::net::IpAddr;
#[cfg(feature = "web")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
#[cfg(feature = "serial")]
use echonet_lite::serial::Module;
use echonet_lite::wire::PORT;

use crate::failure::EXIT_CODES;
use crate::language::Language;

const EXAMPLES: &str = "\
Examples:
  echonet discover                                           what is there
  echonet get 192.168.1.5 homeAirConditioner                 everything it tells
  echonet get 192.168.1.5 homeAirConditioner:1 0xB3 bb       two of its properties
  echonet set 192.168.1.5 homeAirConditioner targetTemperature=22.0 operationMode=cooling
  echonet watch --interval 30                                what changes, asked for and announced
  echonet decode 1081 0001 05ff01 029001 62 01 8000          what a frame says
  echonet serve homeAirConditioner generalLighting:1 generalLighting:2
  echonet --json get 192.168.1.5 lvSmartElectricEnergyMeter E7 | jq .properties[0].value

Classes and properties go by their short names (echonet classes), or the beginning of one, in any case, or by their codes.
Objects are homeAirConditioner:1, 0130:1 or 013001; :all means every instance, and without a number it is the first.";

const JSON: &str = "\
JSON: with --json every result is one line.
  object    {\"eoj\": \"0x013001\", \"class\": \"homeAirConditioner\" or null, \"instance\": 1}
  property  {\"epc\": \"0xB3\", \"name\": \"targetTemperature\" or null, and where there is a value
             \"edt\": \"16\", \"value\": 22 (null where the tables do not explain it), \"unit\": \"°C\" (if any; of lists and
             fields in the shape of the value), \"text\" (releases, makers' names, texts); numbers are multiplied with the
             properties that they are counted in, or \"raw\": true, \"coefficients\": [\"0xD3\"] where these are not known;
             \"status\": asked, accepted, refused, omitted or received (if there is more to say than the value)}
  discover  {\"address\", \"addresses\": [], \"objects\": [object], \"maker\", \"identification\", \"version\"}
  get, set  {\"address\", \"object\": object, \"properties\": [property]}
  watch     {\"time\", \"address\", \"object\": object, \"source\": \"notification\" or \"poll\", \"property\": property}
  serve     {\"time\", \"event\": \"serving\", \"set\" or \"changed\", \"object\": object, \"property\": property}
  decode    {\"tid\", \"seoj\": object, \"deoj\": object, \"esv\": \"Get\", \"properties\": [property], \"getProperties\":
             [property] (SetGet)}, {\"tid\", \"edata\"} (format 2), or {\"error\": {\"offset\", \"cause\"}, \"bytes\"}
  dump      as decode, with \"time\", \"from\", \"to\" in front
  emulate   {\"event\": \"serving\", \"address\", \"object\": object}
  bridge    {\"event\": \"found\", \"address\", \"object\": object, \"topic\"}
  web       {\"event\": \"listening\", \"url\"}, {\"event\": \"found\", \"address\", \"object\": object, \"device\"}
  export    {\"event\": \"listening\", \"url\"}, {\"event\": \"found\", …} as web
  certify   {\"object\": object, \"item\", \"requirement\", \"source\", \"outcome\": passed, failed or undecided, \"why\", \"exchanges\": [{\"sent\", \"received\"}]}
  classes   {\"code\", \"class\", \"name\", \"nameJa\", \"releases\", \"properties\": [{\"epc\", \"name\", …}] (of one class)}
  bench     {\"requests\", \"answered\", \"lost\", \"refused\", \"seconds\", \"perSecond\", \"microseconds\": {\"p50\", …}}";

const EMULATE: &str = "\
A file:
  [[node]]
  address = \"127.0.0.2\"           # each node on an address of its own
  [[node.object]]
  class = \"homeAirConditioner\"
  values = { targetTemperature = \"25\" }
  script = [{ after = 5, set = { operationStatus = \"off\" } }]
  [[node.object]]
  class = \"lvSmartElectricEnergyMeter\"
  live = true                     # it counts; batteries, blinds and shutters move
  [[node.fault]]
  kind = \"wrong-size\"
  object = \"homeAirConditioner\"
  property = \"roomTemperature\"

Faults of nodes: silent, late (seconds = 2.5), repeated, wrong-tid, wrong-source, wrong-destination, no-refusal,
refusal-as-success, only-first, reversed, refusal-without-value, confirmation-with-value, no-infc-res, no-inf-req, no-set-get,
no-announcement, answers-for-absent, takes-anything, wrong-count, wrong-class-count, wrong-instances, wrong-classes,
long-map-as-list. Faults of properties: missing, hidden-in-map, invented-in-map, wrong-size, wrong-value (value = \"0xFF\"),
unwritable.";

/// Finds, reads, writes, watches, decodes, emulates and measures ECHONET Lite nodes
#[derive(Parser, Debug)]
#[command(name = "echonet", version, after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{JSON}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of all commands.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Use this interface only; can be given several times
    #[arg(short, long, global = true, value_name = "NAME", help_heading = "Network")]
    pub(crate) interface: Vec<String>,
    /// Listen on this address of the machine only; can be given several times
    #[arg(long, global = true, value_name = "IP", help_heading = "Network")]
    pub(crate) address: Vec<IpAddr>,
    /// Speak IPv4 only
    #[arg(short = '4', long, global = true, conflicts_with = "ipv6", help_heading = "Network")]
    pub(crate) ipv4: bool,
    /// Speak IPv6 only
    #[arg(short = '6', long, global = true, help_heading = "Network")]
    pub(crate) ipv6: bool,
    /// Send requests by TCP to nodes that accept connections
    #[arg(long, global = true, help_heading = "Network")]
    pub(crate) tcp: bool,
    /// Have the smart meter behind the Wi-SUN module on this serial port, too, as node 127.36.10.1 (or: meter); tcp://HOST:PORT
    /// is a serial server. $ROUTE_B_ID and $ROUTE_B_PASSWORD are the credentials from the grid operator
    #[cfg(feature = "serial")]
    #[arg(long, global = true, value_name = "PORT", help_heading = "Route B")]
    pub(crate) meter: Option<String>,
    /// The module on the serial port: BP35A1, BP35C0, RL7023 or RL7023-DSS
    #[cfg(feature = "serial")]
    #[arg(long, global = true, value_name = "NAME", value_parser = module, help_heading = "Route B")]
    pub(crate) module: Option<Module>,
    /// Makers, makers' properties and classes beside those of the tables: a TOML file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Show names of classes, properties and states in this language
    #[arg(long, global = true, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    /// Live on this port instead of 3610, where no real node will be found
    #[arg(long, global = true, default_value_t = PORT, hide = true)]
    pub(crate) port: u16,
    /// How long to wait, to search or to listen
    #[arg(short, long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Print results as JSON, one in a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results and errors only: no progress, no remarks
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Find the nodes of the network and their objects
    ///
    /// Asks all nodes by multicast on every interface, IPv4 and IPv6, for three seconds or --timeout.
    #[command(after_help = "Examples:
  echonet discover
  echonet discover --node 192.168.5.0/24           behind a router, or from a container: each address is asked, too")]
    Discover(Search),
    /// Read properties of an object
    ///
    /// Without properties it reads all that the object says can be read.
    #[command(after_help = "Examples:
  echonet get 192.168.1.5 homeAirConditioner operationStatus targetTemperature
  echonet get fe80::5%eth0 generalLighting:2
  echonet get 192.168.1.5 generalLighting:all 80
  echonet get 192.168.1.5 node                     the node profile")]
    Get(Get),
    /// Write properties of an object
    ///
    /// Values are checked by the table of the class before anything is sent.
    #[command(after_help = "Examples:
  echonet set 192.168.1.5 generalLighting operationStatus=on lightLevel=50
  echonet set 192.168.1.5 homeAirConditioner 'targetTemperature=22 C' operationMode=cooling
  echonet set 192.168.1.5 029001 80=0x30           0x… is the value's bytes as they are")]
    Set(Set),
    /// Print what nodes announce, as it happens
    #[command(after_help = "Examples:
  echonet watch                                    what all nodes announce
  echonet watch 192.168.1.5 --interval 10          and what a node does not announce, when it has changed
  echonet watch --json --count 1 --timeout 60      wait for one announcement")]
    Watch(Watch),
    /// Decode the multicast traffic of the network, or a capture
    ///
    /// Live, it hears multicasts and takes nothing away from other programs. To capture traffic between two other
    /// nodes, use tcpdump: tcpdump -w FILE port 3610, then echonet dump --read FILE.
    #[command(after_help = "Examples:
  echonet dump -v
  echonet dump --pcap home.pcap                    write it for wireshark, too
  echonet dump --read home.pcap --json")]
    Dump(Dump),
    /// Explain frames: hexadecimal bytes, or lines of them on standard input
    #[command(after_help = "Examples:
  echonet decode 1081000105ff010290016201 8000
  echonet decode 10:81:00:01:01:30:01:05:ff:01:72:01:b3:01:16
  xxd -p -c 1500 datagram | echonet decode")]
    Decode(Decode),
    /// Emulate objects of any class
    ///
    /// Every property of the class's table is there, with a plausible value; it can be read, written and announces itself
    /// as the table says. Lines on standard input change values: homeAirConditioner:1 operationStatus=off
    #[command(after_help = "Examples:
  echonet serve homeAirConditioner
  echonet serve generalLighting generalLighting temperatureSensor    two lights and a sensor
  echonet serve lvSmartElectricEnergyMeter --mandatory --address 127.0.0.2")]
    Serve(Serve),
    /// Emulate a whole home from a file: nodes of any classes, scripted values, deliberate faults
    #[command(after_help = EMULATE)]
    Emulate(Emulate),
    /// Bring the home into MQTT, as Home Assistant discovers it
    ///
    /// Every object is a device, every property an entity with its class, unit, range and options. Announcements are
    /// published as they come. Other properties are asked for, the more often the more they change.
    #[cfg(feature = "mqtt")]
    #[command(after_help = "Topics:
  echonet/NODE/OBJECT/PROPERTY             what is, retained; fields and flags of a property are below it
  echonet/NODE/OBJECT/PROPERTY/set         what shall be
  echonet/NODE/availability                online or offline; echonet/bridge/availability too
  homeassistant/device/DEVICE/config       what Home Assistant is told

Examples:
  echonet bridge mqtt://broker
  echonet bridge mqtts://user@broker.example --mqtt-ca ca.pem --password-file secret
  echonet bridge mqtt://user@192.168.1.2:1883 --password-file secret --poll 30 --quirks my.tsv")]
    Bridge(Bridge),
    /// Serve the home by the ECHONET Lite Web API, and as a page
    ///
    /// Every object that is found is a device of the API, with the names and values of the tables; /events tells what changes,
    /// /openapi.json describes all of it. Without --token-file, or $ECHONET_WEB_TOKEN, only this machine can be served.
    #[cfg(feature = "web")]
    #[command(after_help = "Examples:
  echonet web                                      http://127.0.0.1:8610/ is the page
  echonet web --emulate home.toml                  of devices that are not there
  echonet web --listen 192.168.1.2:8610 --token-file secret --host home.example
  curl localhost:8610/elapi/v1/devices
  curl -X PUT localhost:8610/elapi/v1/devices/ID/properties/operationStatus --json '{\"operationStatus\": true}'")]
    Web(Web),
    /// Serve the state of the home as metrics for Prometheus
    ///
    /// Numbers are metrics by their property and unit, states are labels, totals are counters. Devices are asked for what they
    /// do not announce while a scraper comes. Without --token-file, or $ECHONET_WEB_TOKEN, only this machine can be served.
    #[cfg(feature = "web")]
    #[command(after_help = "Examples:
  echonet export                                   http://127.0.0.1:9610/metrics
  echonet export --listen 192.168.1.2:9610 --token-file secret
  curl localhost:9610/metrics")]
    Export(Export),
    /// Hold a node against the specification, and list what it does not meet
    ///
    /// It asks and writes as a tester does: each writable property gets its own value and impossible ones, devices are switched
    /// off and on. --read-only leaves that out. It ends with 4 if an item failed.
    #[command(after_help = "Examples:
  echonet certify 192.168.1.5
  echonet certify 192.168.1.5 --junit report.xml --read-only")]
    Certify(Certify),
    /// List the classes, or the properties of one
    #[command(after_help = "Examples:
  echonet classes
  echonet classes homeAirConditioner
  echonet classes 0288 --lang ja")]
    Classes(Classes),
    /// Measure how fast a node answers
    #[command(after_help = "Examples:
  echonet bench 192.168.1.5                        the node profile, one request after the other, for 5 s
  echonet bench 192.168.1.5 generalLighting 80 --window 32 --count 100000")]
    Bench(Bench),
    /// Print the completions of a shell
    #[command(after_help = "Examples:
  echonet completions bash > ~/.local/share/bash-completion/completions/echonet
  echonet completions zsh > ~/.zfunc/_echonet
  echonet completions fish > ~/.config/fish/completions/echonet.fish")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// Where nodes are searched for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Search {
    /// Ask this address for a node, too, or each address of this subnet (192.168.5.0/24): where multicast does not come
    /// through; can be given several times
    #[arg(long = "node", value_name = "ADDRESS", help_heading = "Network")]
    pub(crate) nodes: Vec<String>,
}

#[cfg(feature = "serial")]
impl Command {
    /// True for the commands beside which `--meter` makes the meter a node.
    pub(crate) fn reaches_meters(&self) -> bool {
        match self {
            Self::Discover(_) | Self::Get(_) | Self::Set(_) | Self::Watch(_) => true,
            #[cfg(feature = "mqtt")]
            Self::Bridge(_) => true,
            #[cfg(feature = "web")]
            Self::Export(_) | Self::Web(_) => true,
            _ => false,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Get {
    /// Node to ask: an IPv4 or IPv6 address (fe80::5%eth0)
    pub(crate) target: String,
    /// Which of its objects: homeAirConditioner:1, 013001
    pub(crate) object: String,
    /// Which properties: names or codes; all if there are none
    #[arg(value_name = "PROPERTY")]
    pub(crate) properties: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Set {
    /// Node to write to: an IPv4 or IPv6 address (fe80::5%eth0)
    pub(crate) target: String,
    /// Which of its objects: homeAirConditioner:1, 013001
    pub(crate) object: String,
    /// Values to write: operationStatus=on, B3=22
    #[arg(value_name = "PROPERTY=VALUE", required = true)]
    pub(crate) writes: Vec<String>,
    /// Have no confirmation (SetI): silence is agreement
    #[arg(long)]
    pub(crate) unconfirmed: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Watch {
    /// Nodes to listen to; all nodes if there are none
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Ask for all values so often, in seconds, and print those that have changed
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) interval: Option<Duration>,
    /// End after so many lines; fewer within --timeout, or none at all, is a failure (exit code 3)
    #[arg(short, long)]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Dump {
    /// Decode this file instead: pcap, or lines of hexadecimal bytes; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) read: Option<PathBuf>,
    /// Write what is heard to this file, for wireshark and --read
    #[arg(long, value_name = "FILE", conflicts_with = "read")]
    pub(crate) pcap: Option<PathBuf>,
    /// Print every property in a line of its own
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// End after so many frames
    #[arg(short, long)]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Decode {
    /// The bytes of one frame; spaces, colons and 0x are skipped
    pub(crate) hex: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Which classes or objects: homeAirConditioner, generalLighting:2
    #[arg(value_name = "CLASS", required = true)]
    pub(crate) objects: Vec<String>,
    /// Have only the properties that every device of the class must have
    #[arg(long)]
    pub(crate) mandatory: bool,
    /// Number that tells this node from others; the number of the process if not given
    #[arg(long, value_name = "NUMBER")]
    pub(crate) serial: Option<u64>,
    /// The maker's code, six hexadecimal digits
    #[arg(long, default_value = "000077", value_name = "CODE")]
    pub(crate) maker: String,
    /// Most that an answer to a multicast request waits
    #[arg(long, default_value = "0.5", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) delay: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct Emulate {
    /// The home, in TOML
    pub(crate) file: PathBuf,
}

#[cfg(feature = "mqtt")]
#[derive(Args, Debug)]
pub(crate) struct Bridge {
    #[command(flatten)]
    pub(crate) search: Search,
    /// The broker: mqtt://HOST, mqtt://HOST:PORT or mqtt://USER@HOST:PORT, with TLS mqtts://HOST; other users of this machine see a
    /// password in it
    #[arg(value_name = "URL")]
    pub(crate) broker: String,
    /// The file whose first line is the password of the user; without it, the environment variable ECHONET_MQTT_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The authorities that the broker's certificate is checked against, for mqtts://: a PEM file; without it, those of the system
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub(crate) mqtt_ca: Option<PathBuf>,
    /// The bridge's own certificate for the broker: a PEM file
    #[arg(long, value_name = "FILE", requires = "mqtt_key", help_heading = "TLS")]
    pub(crate) mqtt_cert: Option<PathBuf>,
    /// The key of that certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "mqtt_cert", help_heading = "TLS")]
    pub(crate) mqtt_key: Option<PathBuf>,
    /// Take back what the broker retains of nodes and objects that are not found within 15 s (or --timeout), and end
    #[arg(long)]
    pub(crate) clean: bool,
    /// Names, areas and entities of devices as you want them: a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The topic that all others are below
    #[arg(long, default_value = "echonet", value_name = "TOPIC")]
    pub(crate) topic: String,
    /// Where Home Assistant looks for devices
    #[arg(long, default_value = "homeassistant", value_name = "TOPIC")]
    pub(crate) discovery: String,
    /// The least time between two questions to an object
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) poll: Duration,
    /// Quirks of some makers' devices: lines of MAKER, CLASS, RULE, VALUE between tabs
    #[arg(long, value_name = "FILE")]
    pub(crate) quirks: Option<PathBuf>,
}

#[cfg(feature = "web")]
#[derive(Args, Debug)]
pub(crate) struct Web {
    #[command(flatten)]
    pub(crate) search: Search,
    /// Where to listen for HTTP
    #[arg(long, default_value = "127.0.0.1:8610", value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Answer requests to this name, besides addresses and localhost; can be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Serve only clients that send the token in this file: Authorization: Bearer TOKEN, or X-Elapi-key: TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// How often to ask for values that devices do not announce, while a client reads events
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) poll: Duration,
    /// Quirks of some makers' devices: lines of MAKER, CLASS, RULE, VALUE between tabs
    #[arg(long, value_name = "FILE")]
    pub(crate) quirks: Option<PathBuf>,
    /// Play this virtual home beside: a file as for `echonet emulate`
    #[arg(long, value_name = "FILE")]
    pub(crate) emulate: Option<PathBuf>,
}

#[cfg(feature = "web")]
#[derive(Args, Clone, Debug)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) search: Search,
    /// Where to listen for HTTP
    #[arg(long, default_value = "127.0.0.1:9610", value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Answer requests to this name, besides addresses and localhost; can be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Serve only clients that send the token in this file: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// How often to ask for values that devices do not announce
    #[arg(long, default_value = "15", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) poll: Duration,
    /// Quirks of some makers' devices: lines of MAKER, CLASS, RULE, VALUE between tabs
    #[arg(long, value_name = "FILE")]
    pub(crate) quirks: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Certify {
    /// Node to examine
    pub(crate) target: IpAddr,
    /// Write the report to this file, too, as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write no property
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Print what passed, too
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Classes {
    /// The class whose properties to list
    pub(crate) class: Option<String>,
    /// The language of names, as --language
    #[arg(long, value_name = "LANGUAGE", conflicts_with = "language")]
    pub(crate) lang: Option<Language>,
}

#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Node to ask
    pub(crate) target: String,
    /// Which of its objects
    #[arg(default_value = "nodeProfile")]
    pub(crate) object: String,
    /// Which properties to read in each request
    #[arg(value_name = "PROPERTY", default_value = "80")]
    pub(crate) properties: Vec<String>,
    /// How many requests to have under way
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) window: u16,
    /// End after so many requests
    #[arg(short, long)]
    pub(crate) count: Option<u64>,
    /// End after so long, if there is no --count
    #[arg(short, long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Duration,
}

/// The longest time that can be asked for: a year.
const LONGEST: f64 = 365.0 * 86_400.0;

/// The module of `--module`, by the name that it is sold under.
#[cfg(feature = "serial")]
fn module(name: &str) -> Result<Module, String> {
    let names = || Module::ALL.map(Module::name).join(", ");
    Module::by_name(name).ok_or_else(|| format!("one of {}", names()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=LONGEST).contains(&seconds) {
        return Err("between 0 and a year".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn no_two_options_have_one_name() {
        super::Cli::command().debug_assert();
    }
}
