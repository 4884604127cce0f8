//! Which of several UDP sockets at one address receives a datagram of QUIC.
//!
//! A QUIC client may change its address, so the system's usual choice by address would separate a connection from its state. The
//! server chooses the connection ids that its clients send (RFC 9000 section 5.1), so the id can name the socket.

use socket2::Socket;

/// A flag of the first byte: the header is a long one (RFC 8999 section 5.1).
const LONG: u8 = 0x80;
/// Where the destination's connection id begins in a long header: behind the first byte, the version and the id's length.
const LONG_ID: usize = 6;
/// The same in a short header.
const SHORT_ID: usize = 1;

/// The number of sockets that a connection id can distinguish.
pub const QUIC_SHARES_MAX: usize = 256;

/// The share (0 to `shares` - 1) that a connection id belongs to, by its first byte.
pub fn quic_share_of_id(first: u8, shares: usize) -> usize {
    usize::from(first) % shares
}

/// The share (0 to `shares` - 1) that a datagram belongs to, by the connection id of its first packet. A datagram without one
/// belongs to the first share.
pub fn quic_share(datagram: &[u8], shares: usize) -> usize {
    let at = datagram.first().map_or(0, |first| if first & LONG == 0 { SHORT_ID } else { LONG_ID });
    datagram.get(at).map_or(0, |first| quic_share_of_id(*first, shares))
}

/// Has the system give each datagram to the socket of its [`quic_share`]. `sockets` is the number of sockets at the address of
/// `first`, which was bound first; a socket's share is its place in the order of binding.
///
/// # Errors
/// When the system refuses the program.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "socket2 and rustix have no such call")]
pub(crate) fn steer(first: &Socket, sockets: usize) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use libc::{BPF_A, BPF_ABS, BPF_ALU, BPF_B, BPF_JA, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_MOD, BPF_RET};

    let step = |code: u32, if_true: u8, if_false: u8, operand: usize| libc::sock_filter {
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k: operand as u32,
    };
    // A byte behind the end of a datagram ends the program with 0, the first socket.
    let mut program = [
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JSET | BPF_K, 0, 2, LONG.into()),
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, LONG_ID),
        step(BPF_JMP | BPF_JA, 0, 0, 1),
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, SHORT_ID),
        step(BPF_ALU | BPF_MOD | BPF_K, 0, 0, sockets),
        step(BPF_RET | BPF_A, 0, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the system copies the program, which lives longer than the call, and the length is that of the structure.
    let result = unsafe {
        libc::setsockopt(
            first.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const filter).cast(),
            size_of_val(&filter) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let check = |datagram: &[u8], expected| assert_eq!(quic_share(datagram, 3), expected, "{datagram:x?}");
        check(b"", 0);
        check(&[0x40], 0);
        check(&[0x40, 4], 1);
        check(&[0xc0, 0, 0, 0, 1, 8], 0);
        check(&[0xc0, 0, 0, 0, 1, 8, 5, 9], 2);
    }
}
