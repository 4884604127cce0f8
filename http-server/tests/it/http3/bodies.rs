//! Bodies of requests, as handlers get them.

use super::{Peer, answer, frame, post_of, run};

/// Small DATA frames that come together are one piece of the body, behind what was sent before them.
#[test]
fn small_frames_are_gathered() {
    let peer = Peer::start();
    run(async {
        let raw = peer.raw().await;
        let sizes = [vec![1; 2000], vec![300, 1, 5000, 0, 1], vec![60; 100]].concat();
        let mut body = Vec::new();
        let mut frames = Vec::new();
        for size in &sizes {
            let piece: Vec<u8> = (body.len()..body.len() + size).map(|at| (at % 251) as u8).collect();
            frames.extend(frame(0, &piece));
            body.extend(piece);
        }
        let ask = async |path| {
            let (mut send, mut receive) = raw.request(&[post_of(path, &[]), frames.clone()].concat()).await;
            send.finish().unwrap();
            answer(&mut receive).await.unwrap()
        };
        let echoed = ask("/t/echo").await;
        assert!(echoed.ends_with(&body), "{} bytes of {}", echoed.len(), body.len());
        let said = ask("/t/pieces").await;
        // The answer's body is its last frame.
        let digits = said.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let pieces: usize = std::str::from_utf8(&said[said.len() - digits..]).unwrap().parse().unwrap();
        // As many as there are datagrams, more or less, which bring some fifty frames each.
        assert!((10..sizes.len() / 10).contains(&pieces), "{pieces} pieces of {} frames", sizes.len());
    });
}
