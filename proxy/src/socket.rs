//! What a connection may not do to others: keep its answer unread for ever, or take every place for one peer.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};

/// How long a client may take none of an answer. What is read slowly goes on.
pub const UNREAD: Duration = Duration::from_secs(30);

/// Connections of one address. An ingress brings everybody's from few, and a sidecar serves some dozens of requests at once: this is
/// far from both, and leaves three quarters of all places to others.
const EACH: usize = 1024;

/// A connection that ends where nothing that is written to it is taken.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    stuck: Option<Pin<Box<Sleep>>>,
    patience: Duration,
}

impl Socket {
    /// A connection whose peer may take none of an answer for so long.
    #[must_use]
    pub const fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, stuck: None, patience }
    }

    /// The result of an attempt to write. The clock runs from the first one that could not go on, and only while none can.
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of its answer")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How many connections each address has.
#[derive(Debug, Clone, Default)]
pub struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One connection of an address; dropping it makes room.
#[derive(Debug)]
pub struct Seat {
    peers: Peers,
    address: IpAddr,
}

impl Peers {
    /// Takes a place for an address, if it has not taken all of its own.
    #[must_use]
    pub fn enter(&self, address: IpAddr) -> Option<Seat> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(address).or_default();
        if *count >= EACH {
            return None;
        }
        *count += 1;
        Some(Seat { peers: self.clone(), address })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = taken.entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    async fn pair(patience: Duration) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Socket::new(listener.accept().await.unwrap().0, patience), client)
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (mut socket, client) = pair(Duration::from_millis(50)).await;
        // More than the kernel keeps for somebody who does not read.
        let error = socket.write_all(&vec![b'x'; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test]
    async fn a_client_that_takes_a_little_at_a_time_is_not() {
        let (mut socket, mut client) = pair(Duration::from_secs(5)).await;
        let written = async {
            socket.write_all(&vec![b'x'; 16 << 20]).await.unwrap();
            drop(socket);
        };
        let read = async {
            let (mut all, mut some) = (0, vec![0; 256 << 10]);
            loop {
                match client.read(&mut some).await.unwrap() {
                    0 => return all,
                    more => all += more,
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        assert_eq!(tokio::join!(written, read).1, 16 << 20);
    }

    #[test]
    fn one_address_does_not_take_every_place() {
        let peers = Peers::default();
        let (one, two) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut seats: Vec<Seat> = (0..EACH).map(|_| peers.enter(one).unwrap()).collect();
        assert!(peers.enter(one).is_none() && peers.enter(two).is_some());
        seats.pop();
        assert!(peers.enter(one).is_some(), "a connection that ended makes room");
        drop(seats);
        assert!(peers.0.lock().unwrap().is_empty());
    }
}
