//! Streams beside requests: the control stream, and QPACK's.

use super::{EXCESSIVE_LOAD, Peer, frame, number, run};

/// A stream of the connection's own may have no frame that is long, and may not end.
#[test]
fn the_control_stream() {
    let peer = Peer::start();
    run(async {
        let raw = peer.raw().await;
        let _control = raw.control(&[&number(7)[..], &number(1 << 40)].concat()).await;
        assert_eq!(raw.closed().await, EXCESSIVE_LOAD);
        let raw = peer.raw().await;
        let _control = raw.control(&frame(13, &[1]).repeat(200)).await;
        assert_eq!(raw.closed().await, EXCESSIVE_LOAD, "MAX_PUSH_ID, which nobody needs often");
        // A limit that is raised, and one that is lowered (RFC 9114 section 7.2.7); a push that was never promised (section 7.2.3).
        let raw = peer.raw().await;
        let _control = raw.control(&[frame(13, &[1]), frame(13, &[1]), frame(13, &[0x40, 9])].concat()).await;
        assert!(raw.get("/").await.is_ok());
        for wrong in [[frame(13, &[5]), frame(13, &[4])].concat(), frame(3, &[0])] {
            let raw = peer.raw().await;
            let _control = raw.control(&wrong).await;
            assert_eq!(raw.closed().await, 0x108, "H3_ID_ERROR: {wrong:?}");
        }
        let raw = peer.raw().await;
        raw.control(b"").await.finish().unwrap();
        assert_eq!(raw.closed().await, 0x104, "H3_CLOSED_CRITICAL_STREAM");
        let raw = peer.raw().await;
        let (_first, _second) = (raw.control(b"").await, raw.control(b"").await);
        assert_eq!(raw.closed().await, 0x103, "H3_STREAM_CREATION_ERROR");
    });
}

/// A change of its priority beside each request (RFC 9218 section 7.2) is no flood, at whatever speed.
#[test]
fn priorities_beside_requests() {
    let peer = Peer::with(|options| options.limits.control_frames = 5);
    run(async {
        let raw = peer.raw().await;
        let mut control = raw.control(b"").await;
        for request in 0..100 {
            let update = [&number(4 * request)[..], b"u=1"].concat();
            control.write_all(&frame(0xf_0700, &update)).await.unwrap();
            assert!(raw.get("/").await.is_ok(), "request {request}");
        }
    });
}

/// To a QPACK without a dynamic table hardly anything can be said, and nothing is kept of it (RFC 9204 section 4).
#[test]
fn the_streams_of_qpack() {
    let peer = Peer::start();
    run(async {
        let raw = peer.raw().await;
        let _control = raw.control(b"").await;
        let _streams = (raw.aside(&[2, 0x20]).await, raw.aside(&[3, 0x40, 0x7f, 1]).await);
        assert!(raw.get("/").await.unwrap().ends_with(b"Hello from Rust"));
        // More than a window of what is no instruction; a capacity; an acknowledgement of nothing.
        let much = vec![2; 3 << 20];
        let rows = [
            (&much[..], 0x201, "QPACK_ENCODER_STREAM_ERROR"),
            (&[2, 0x3f, 0xe1, 0x1f], 0x201, "QPACK_ENCODER_STREAM_ERROR"),
            (&[3, 0x81], 0x202, "QPACK_DECODER_STREAM_ERROR"),
            (&[&[2][..], &[0x20; 200]].concat(), EXCESSIVE_LOAD, "H3_EXCESSIVE_LOAD"),
            (&[1, 0], 0x103, "H3_STREAM_CREATION_ERROR"),
        ];
        for (said, code, name) in rows {
            let raw = peer.raw().await;
            let _stream = raw.aside(said).await;
            assert_eq!(raw.closed().await, code, "{name}: {said:.9?}");
        }
        let raw = peer.raw().await;
        let _both = (raw.aside(&[3]).await, raw.aside(&[3]).await);
        assert_eq!(raw.closed().await, 0x103, "H3_STREAM_CREATION_ERROR");
        for kind in [2, 3] {
            let raw = peer.raw().await;
            raw.aside(&[kind]).await.finish().unwrap();
            assert_eq!(raw.closed().await, 0x104, "H3_CLOSED_CRITICAL_STREAM: {kind}");
        }
    });
}
