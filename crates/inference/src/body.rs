//! Bodies of HTTP messages.

use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use thiserror::Error;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// Any error of a body.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Body of a response.
#[derive(Default)]
pub(crate) struct Body {
    content: Content,
    sending: Option<Arc<Sending>>,
}

enum Content {
    Chunks(Chunks),
    Grpc(tonic::body::Body),
}

impl Default for Content {
    fn default() -> Content {
        Content::Chunks(Chunks::default())
    }
}

impl Body {
    pub(crate) fn chunks(chunks: Chunks) -> Body {
        Body { content: Content::Chunks(chunks), sending: None }
    }

    pub(crate) fn grpc(body: tonic::body::Body) -> Body {
        Body { content: Content::Grpc(body), sending: None }
    }

    /// Keeps this until the body is sent.
    pub(crate) fn hold(&mut self, sending: Sending) {
        self.sending = Some(Arc::new(sending));
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.content {
            Content::Chunks(chunks) => {
                Poll::Ready(chunks.next().map(|chunk| Ok(Frame::data(chunk))))
            }
            Content::Grpc(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(Into::into))),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = this.next(context);
        let Some(sending) = &this.sending else { return frame };
        // The connection takes the whole body long before it is sent, so the data have to keep it.
        frame.map_ok(|frame| {
            frame.map_data(|data| {
                Bytes::from_owner(ResponseData { data, _sending: Arc::clone(sending) })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Chunks(chunks) => chunks.chunks.is_empty(),
            Content::Grpc(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Chunks(chunks) => SizeHint::with_exact(chunks.len()),
            Content::Grpc(body) => body.size_hint(),
        }
    }
}

/// Data of a response that is being sent.
struct ResponseData {
    data: Bytes,
    _sending: Arc<Sending>,
}

impl AsRef<[u8]> for ResponseData {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// A response that is being sent. If that takes too long, its connection is closed: a caller that does not read must
/// not hold memory, nor the permit of its call.
pub(crate) struct Sending {
    _permit: OwnedSemaphorePermit,
    _sent: oneshot::Sender<()>,
}

impl Sending {
    /// Notifies `stalled` unless the response is sent within `limit`.
    pub(crate) fn new(
        permit: OwnedSemaphorePermit,
        limit: Duration,
        stalled: Arc<Notify>,
    ) -> Sending {
        let (sent, is_sent) = oneshot::channel();
        tokio::spawn(async move {
            if timeout(limit, is_sent).await.is_err() {
                stalled.notify_one();
            }
        });
        Sending { _permit: permit, _sent: sent }
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
