//! Bodies of HTTP messages.

use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};

/// Any error of a body.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Body of a response.
pub(crate) enum Body {
    Chunks(Chunks),
    Grpc(tonic::body::Body),
}

impl Default for Body {
    fn default() -> Body {
        Body::Chunks(Chunks::default())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Body::Chunks(chunks) => Poll::Ready(chunks.next().map(|chunk| Ok(Frame::data(chunk)))),
            Body::Grpc(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Chunks(chunks) => chunks.chunks.is_empty(),
            Body::Grpc(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Chunks(chunks) => SizeHint::with_exact(chunks.len()),
            Body::Grpc(body) => body.size_hint(),
        }
    }
}

/// Pieces of memory that are sent one behind the other, without a copy.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    chunks: VecDeque<Bytes>,
}

impl Chunks {
    pub(crate) fn new(mut chunks: VecDeque<Bytes>) -> Chunks {
        chunks.retain(|chunk| !chunk.is_empty());
        Chunks { chunks }
    }

    fn len(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    fn next(&mut self) -> Option<Bytes> {
        self.chunks.pop_front()
    }
}

impl From<Bytes> for Chunks {
    fn from(bytes: Bytes) -> Chunks {
        Chunks::new(VecDeque::from([bytes]))
    }
}

/// A body did not arrive in time.
#[derive(Debug, Error)]
#[error("the body did not arrive within {} s", .limit.as_secs_f64())]
pub(crate) struct SlowBody {
    pub(crate) limit: Duration,
}

/// Body of a request that has to arrive within a time limit.
pub(crate) struct TimedBody<B> {
    body: B,
    limit: Duration,
    until: Pin<Box<Sleep>>,
}

impl<B> TimedBody<B> {
    pub(crate) fn new(body: B, limit: Duration) -> TimedBody<B> {
        TimedBody { body, limit, until: Box::pin(sleep_until(Instant::now() + limit)) }
    }
}

impl<B> http_body::Body for TimedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => match this.until.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(SlowBody { limit: this.limit }.into()))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
