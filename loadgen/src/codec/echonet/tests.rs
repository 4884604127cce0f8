use super::*;
use crate::record::Window as Counted;

/// A protocol of one operation, a connection, and an account that counts everything.
struct Bench<const DATAGRAM: bool> {
    protocol: Echonet<DATAGRAM>,
    window: Window,
    tally: Tally,
    source: Source,
}

impl<const DATAGRAM: bool> Bench<DATAGRAM> {
    fn new(operation: &str) -> Self {
        let protocol = Echonet::new(vec![operation.parse().unwrap()], 4, true).unwrap();
        let mut tally = Tally::new(1);
        tally.set_window(Counted::Open { from: 0, until: Nanos::MAX });
        let window = protocol.connect(0);
        Self { protocol, window, tally, source: Source::new(1, 0, 1) }
    }

    fn begin(&mut self, intended: Nanos) -> Vec<u8> {
        let mut out = Vec::new();
        self.protocol.begin(&mut self.window, intended, &mut self.source, &mut out);
        out
    }

    fn receive(&mut self, input: &[u8]) -> Result<Received, Broken> {
        self.protocol.receive(&mut self.window, input, &mut self.tally)
    }

    /// Right, timed out, garbage, refused, wrong, unexpected.
    fn counts(&self) -> [u64; 6] {
        let failed = |kind| self.tally.failures().count(kind);
        [
            self.tally.latencies()[0].count(),
            failed(Failure::TimedOut),
            failed(Failure::Protocol),
            failed(Failure::Rejected),
            failed(Failure::Wrong),
            self.tally.unexpected_answers(),
        ]
    }

    fn example(&self) -> String {
        self.tally.failures().list()[0].examples[0].clone()
    }
}

/// The answer to a request: objects exchanged, another service, other lists.
fn answer(request: &[u8], service: u8, lists: &[u8]) -> Vec<u8> {
    [&request[..4], &request[7..10], &request[4..7], &[service], lists].concat()
}

#[test]
fn answers_are_judged() {
    #[track_caller]
    fn check(operation: &str, service: u8, lists: &[u8], example: Option<(Failure, &str)>) {
        let mut bench = Bench::<true>::new(operation);
        let request = bench.begin(0);
        let answer = answer(&request, service, lists);
        assert_eq!(bench.receive(&answer), Ok(Received { consumed: answer.len(), close: false }));
        assert_eq!(bench.protocol.in_flight(&bench.window), 0);
        match example {
            None => assert_eq!(bench.counts(), [1, 0, 0, 0, 0, 0]),
            Some((failure, text)) => {
                assert_eq!(bench.tally.failures().count(failure), 1);
                assert_eq!(bench.example(), text);
            }
        }
    }
    let get = "get 013001 80=30|31 B0";
    check(get, 0x72, b"\x02\x80\x01\x30\xb0\x01\x41", None);
    check(get, 0x72, b"\x02\x80\x01\x31\xb0\x00", None);
    let wrong = |text| Some((Failure::Wrong, text));
    let text = "Get 013001 80 B0: expected 80=30|31, the answer has 80=32";
    check(get, 0x72, b"\x02\x80\x01\x32\xb0\x01\x41", wrong(text));
    let text = "Get 013001 80 B0: expected B0, the answer has B1=41";
    check(get, 0x72, b"\x02\x80\x01\x30\xb1\x01\x41", wrong(text));
    check(get, 0x72, b"\x01\x80\x01\x30", wrong("Get 013001 80 B0: the answer has 0 and 1 properties"));
    check(get, 0x71, b"\x02\x80\x00\xb0\x00", wrong("Get 013001 80 B0: the answer's service is 71"));
    let refused = Some((Failure::Rejected, "Get 013001 80 B0: Get_SNA 80=30 B0="));
    check(get, 0x52, b"\x02\x80\x01\x30\xb0\x00", refused);

    let set = "set 013001 80=30";
    check(set, 0x71, b"\x01\x80\x00", None);
    let text = "SetC 013001 80=30: 80 was written, the answer says 80=30";
    check(set, 0x71, b"\x01\x80\x01\x30", wrong(text));
    check(set, 0x51, b"\x01\x80\x01\x30", Some((Failure::Rejected, "SetC 013001 80=30: SetC_SNA 80=30")));

    let both = "setget 013001 80=30 / 80";
    check(both, 0x7e, b"\x01\x80\x00\x01\x80\x01\x30", None);
    let text = "SetGet 013001 80=30 / 80: expected 80=30, the answer has 80=31";
    check(both, 0x7e, b"\x01\x80\x00\x01\x80\x01\x31", wrong(text));
    check(both, 0x5e, b"\x00\x00", Some((Failure::Rejected, "SetGet 013001 80=30 / 80: SetGet_SNA")));
}

#[test]
fn an_answer_of_another_object_is_wrong() {
    let mut bench = Bench::<true>::new("get 013001 80");
    let request = bench.begin(0);
    let mut other = answer(&request, 0x72, b"\x01\x80\x01\x30");
    other[6] = 2;
    bench.receive(&other).unwrap();
    assert_eq!(bench.example(), "Get 013001 80: the answer is from 013002 to 05FF01");
}

#[test]
fn all_instances_are_one_request_whose_first_answer_counts() {
    let mut bench = Bench::<true>::new("get 013000 80");
    let request = bench.begin(0);
    for instance in [1, 2] {
        let mut answer = answer(&request, 0x72, b"\x01\x80\x01\x30");
        answer[6] = instance;
        bench.receive(&answer).unwrap();
    }
    assert_eq!(bench.counts(), [1, 0, 0, 0, 0, 1]);
}

#[test]
fn lost_late_and_double_answers_are_told_apart() {
    let mut bench = Bench::<true>::new("get 013001 80");
    let (lost, right) = (bench.begin(10), bench.begin(20));
    let of = |request: &[u8]| answer(request, 0x72, b"\x01\x80\x01\x30");
    bench.receive(&of(&right)).unwrap();
    bench.receive(&of(&right)).unwrap();
    assert_eq!(bench.counts(), [1, 0, 0, 0, 0, 1], "double");
    assert!(!bench.protocol.expire(&mut bench.window, 15, &mut bench.tally));
    assert_eq!(bench.counts(), [1, 1, 0, 0, 0, 1], "lost");
    assert_eq!(bench.example(), "Get 013001 80: no answer (TID 0004)");
    bench.receive(&of(&lost)).unwrap();
    assert_eq!(bench.counts(), [1, 1, 0, 0, 0, 2], "late");
    // An announcement, and a datagram of something else.
    bench.receive(&answer(&right, 0x73, b"\x01\x80\x01\x30")).unwrap();
    bench.receive(b"GET / HTTP/1.1").unwrap();
    bench.receive(&[&of(&right)[..], b"x"].concat()).unwrap();
    assert_eq!(bench.counts(), [1, 1, 2, 0, 0, 2]);
}

#[test]
fn a_stream_is_cut_into_frames() {
    let mut bench = Bench::<false>::new("get 013001 80=30");
    let requests: Vec<Vec<u8>> = (0..4).map(|_| bench.begin(0)).collect();
    let stream: Vec<u8> = requests.iter().flat_map(|request| answer(request, 0x72, b"\x01\x80\x01\x30")).collect();
    let mut kept = Vec::new();
    for byte in &stream {
        kept.push(*byte);
        let consumed = bench.receive(&kept).unwrap().consumed;
        kept.drain(..consumed);
    }
    assert_eq!((bench.counts(), kept.len()), ([4, 0, 0, 0, 0, 0], 0));
    let broken = bench.receive(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
    assert_eq!(broken.failure, Failure::Protocol);
    assert!(broken.example.starts_with("not a frame"), "{}", broken.example);
}

#[test]
fn a_lost_connection_accounts_for_every_request() {
    let mut bench = Bench::<false>::new("get 013001 80");
    (0..4).for_each(|_| drop(bench.begin(Nanos::MAX - 1)));
    assert_eq!(bench.protocol.room(&bench.window), 0);
    bench.protocol.abandon(&mut bench.window, Failure::Closed, &mut bench.tally);
    assert_eq!(bench.tally.failures().count(Failure::Closed), 4);
    assert_eq!(bench.protocol.in_flight(&bench.window), 0);
}

#[test]
fn a_mix_keeps_its_proportion() {
    let operations = ["3:get 013001 80", "1:set 013001 80=30"].map(|text| text.parse().unwrap()).to_vec();
    let protocol = EchonetUdp::new(operations, 1, false).unwrap();
    let mut source = Source::new(1, 0, 1);
    let reads = (0..10_000).filter(|_| protocol.choose(&mut source) == 0).count();
    // Five standard deviations of a binomial count.
    assert!(reads.abs_diff(7_500) < 220, "{reads}");
    assert_eq!(protocol.operations(), ["Get 013001 80", "SetC 013001 80=30"]);
}

#[test]
fn empty_request_lists_and_oversized_windows_are_refused() {
    let get: Operation = "get 013001 80".parse().unwrap();
    let never = Operation { weight: 0, ..get.clone() };
    let nothing = "nothing is asked: expected at least one request with a weight of 1 or more";
    assert_eq!(EchonetUdp::new(Vec::new(), 1, false).unwrap_err(), nothing);
    assert_eq!(EchonetUdp::new(vec![never], 1, false).unwrap_err(), nothing);
    let large = "a window of 20000, expected at most 16384: TIDs have 16 bits";
    assert_eq!(EchonetUdp::new(vec![get], 20_000, false).unwrap_err(), large);
}
