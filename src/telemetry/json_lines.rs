//! Flat JSON lines: one object a line, the fields of the event and of the spans around it at top level.
//!
//! tracing-subscriber's own JSON nests span fields and repeats a name that two of them share; log tools then read
//! only one of the two.

use std::fmt;
use std::io::Write;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Writes each event as a line with at least `timestamp`, `level`, `event` and `message`.
pub(super) struct JsonLines<W> {
    now: fn() -> Timestamp,
    writer: W,
}

impl<W> JsonLines<W> {
    pub(super) fn new(now: fn() -> Timestamp, writer: W) -> Self {
        Self { now, writer }
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.0.extend(outer.0.clone());
            }
        }
        event.record(&mut fields);
        let mut line = fields.0;
        line.insert("timestamp".to_owned(), json!(format!("{:.3}", (self.now)())));
        line.insert("level".to_owned(), json!(event.metadata().level().as_str().to_lowercase()));
        for name in ["event", "message"] {
            line.entry(name).or_insert_with(|| json!(if name == "event" { "log" } else { "" }));
        }
        // One write a line, so that lines of two threads never mix. If stderr is gone there is nobody to tell.
        let text = Value::Object(line).to_string() + "\n";
        drop(self.writer.make_writer_for(event.metadata()).write_all(text.as_bytes()));
    }
}

/// The fields of an event or span. Of two with the same name the inner one stays.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, json!(format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// What was written, shared with the layer that writes it.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nobody panicked").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines_of(body: impl FnOnce()) -> Vec<Value> {
        let written = Written::default();
        let now = || "2026-01-05T10:00:00.1239Z".parse().expect("a timestamp");
        let writer = written.clone();
        let layer = JsonLines::new(now, move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), body);
        let text = String::from_utf8(written.0.lock().expect("nobody panicked").clone()).expect("JSON is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    /// A13: `select(.status_code == 429 and .attempt > 3)` needs numbers at top level.
    #[test]
    fn a_retry_line_can_be_selected_by_its_numbers() {
        let lines = lines_of(|| {
            let none: Option<u64> = None;
            tracing::warn!(
                event = "retry_scheduled",
                status_code = 429_u16,
                attempt = 4_u32,
                delay = 1.5,
                reset = none,
                "waiting"
            );
        });
        let expected = json!({
            "timestamp": "2026-01-05T10:00:00.123Z", "level": "warn", "event": "retry_scheduled", "message": "waiting",
            "status_code": 429, "attempt": 4, "delay": 1.5,
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn fields_of_spans_are_flat_too_and_the_inner_one_wins() {
        let lines = lines_of(|| {
            let outer = tracing::info_span!("pass", stream = "bibs", window = tracing::field::Empty);
            let _entered = outer.enter();
            outer.record("window", 7);
            tracing::info!(stream = "items", level = "a field", "quoted \"text\"\nand a line");
        });
        assert_eq!(lines[0]["stream"], "items");
        assert_eq!(lines[0]["window"], 7);
        assert_eq!((&lines[0]["level"], &lines[0]["event"]), (&json!("info"), &json!("log")));
        assert_eq!(lines[0]["message"], "quoted \"text\"\nand a line");
    }
}
