use std::sync::Arc;

use super::*;
use crate::park::{Park, model};

/// A connection takes all messages in order, although it sleeps whenever the mailbox is empty.
#[test]
fn no_message_stays_in_a_mailbox() {
    model(|| {
        let client = Arc::new(ClientShared::default());
        let (posts, ends) = ([Arc::clone(&client), Arc::clone(&client)], Arc::clone(&client));
        let threads = posts.into_iter().enumerate().map(|(at, client)| {
            shuttle::thread::spawn(move || {
                for number in 0..2 {
                    client.post(Bytes::from(vec![at as u8, number]));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        let (park, waker) = Park::new();
        let mut taken = Vec::new();
        while taken.len() < 4 {
            client.wake_by(&waker);
            if client.has_mail() {
                taken.extend(client.take_mail().messages);
            } else {
                park.sleep();
            }
        }
        for at in 0..2 {
            let numbers: Vec<u8> = taken.iter().filter(|message| message[0] == at).map(|message| message[1]).collect();
            assert_eq!(numbers, [0, 1]);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        ends.close();
        assert!(client.has_mail() && client.take_mail().end == End::WhenSent);
    });
}

/// A kill is noticed, whatever is posted beside it.
#[test]
fn a_kill_is_the_last_that_a_connection_sees() {
    model(|| {
        let client = Arc::new(ClientShared::default());
        let (posts, kills) = (Arc::clone(&client), Arc::clone(&client));
        let posts = shuttle::thread::spawn(move || posts.post(Bytes::from_static(b"message")));
        let kills = shuttle::thread::spawn(move || kills.kill());
        let (park, waker) = Park::new();
        loop {
            client.wake_by(&waker);
            if client.has_mail() {
                if client.take_mail().end == End::Now {
                    break;
                }
            } else {
                park.sleep();
            }
        }
        posts.join().unwrap();
        kills.join().unwrap();
        assert!(client.has_flag(flag::KILLED));
    });
}
