//! What a turn costs beyond the model: her house beside a bare HTTP client that asks the same server, in the same run.
//!
//! ```text
//!  a word                       said ─▶ supervisor ─▶ agent ─▶ model ─▶ … ─▶ the turn is over     beside one bare question
//!  a look at herself            the same with a call of a tool at the soul, and two questions     beside two bare questions
//!  a long answer, in pieces     all of it, as fast as it comes; and what that is for one piece    beside reading the stream
//!  a piece on its way           from the model's write to the client's read, at a model's pace    beside the same without her
//! ```
//!
//! The model is a server on loopback that answers at once, so that nothing but what stands around it is measured. Nothing is
//! asserted: machines differ, and a number that fails a build is soon a number nobody believes.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run, and says where")]
#![expect(clippy::print_stdout, reason = "the numbers are what this is for")]

mod house;
mod model;

use std::time::{Duration, Instant};

use self::{
    house::{Chat, House},
    model::{Model, bare},
};

/// How wide the names are printed.
const WIDE: usize = 66;
/// How many turns of each kind are taken.
const TURNS: usize = 100;
/// How many before them are not counted.
const COLD: usize = 10;
/// How many long answers are heard.
const LONG: usize = 12;
/// In how many pieces such an answer comes.
const PIECES: usize = 2000;
/// In how many pieces an answer comes that takes its time.
const PACED: usize = 400;
/// How long a model takes for a piece: 250 tokens a second.
const PACE: Duration = Duration::from_millis(4);

fn main() {
    let folder = tempfile::Builder::new().prefix("turn-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let model = Model::start();
    let house = House::up(folder.path(), model.port());
    let mut chat = house.chat();
    println!("{:<WIDE$} {:>5} {:>11} {:>11} {:>11} {:>8}", "", "n", "p50", "p90", "p99", "beside");

    let word = ["a turn: a word, and her answer of one", "a bare question with an answer of one word"];
    print(&alternately(word, &mut chat, model.port(), ("a word", 1), TURNS));
    let look = ["a turn with a look at herself between two questions", "two bare questions"];
    print(&alternately(look, &mut chat, model.port(), ("a look", 2), TURNS));

    let long =
        [format!("a turn with an answer in {PIECES} pieces"), format!("a bare stream of {PIECES} pieces")];
    let long = [long[0].as_str(), long[1].as_str()];
    let [hers, bares] = alternately(long, &mut chat, model.port(), ("at length", 1), LONG);
    let one = |name: &str, whole: &Series| {
        let pieces = u32::try_from(PIECES).unwrap();
        let samples = whole.samples.iter().map(|sample| *sample / pieces).collect();
        Series { name: name.to_owned(), samples }
    };
    let pieces = [one("… for one piece of it", &hers), one("… for one piece of it", &bares)];
    print(&[hers, bares]);
    print(&pieces);

    print(&[
        chat.pieces_on_their_way("a piece on its way through her, at 250 a second"),
        bare::pieces_on_their_way("a piece on its way to a bare client", model.port()),
    ]);
    drop(chat);
    house.down();
}

/// A turn, and the same questions to the model by somebody who does nothing else, one after the other: whatever else this
/// machine does meanwhile comes upon both alike. Each turn has a session of its own, so that none is longer than another.
fn alternately(
    names: [&str; 2],
    chat: &mut Chat,
    port: u16,
    (text, questions): (&str, usize),
    n: usize,
) -> [Series; 2] {
    let [mut hers, mut bares] =
        names.map(|name| Series { name: name.to_owned(), samples: Vec::with_capacity(n) });
    let cold = COLD.min(n);
    for number in 0..n + cold {
        let session = chat.new_session();
        let began = Instant::now();
        chat.say(&session, text, |_| {});
        let turn = began.elapsed();
        let began = Instant::now();
        for _ in 0..questions {
            bare::ask(port, text, |_| {});
        }
        if number >= cold {
            hers.samples.push(turn);
            bares.samples.push(began.elapsed());
        }
    }
    [hers, bares]
}

/// How long something took, each time.
struct Series {
    name: String,
    samples: Vec<Duration>,
}

impl Series {
    /// The sample that so many hundredths of all are not above.
    fn percentile(&self, hundredths: usize) -> Duration {
        let mut sorted = self.samples.clone();
        sorted.sort();
        let rank = (sorted.len() * hundredths).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Prints what was measured together, each beside the last of them, and what the first adds to it.
fn print(together: &[Series]) {
    let last = together.last().unwrap().percentile(50);
    for series in together {
        let [p50, p90, p99] = [50, 90, 99].map(|hundredths| series.percentile(hundredths));
        let beside = p50.as_secs_f64() / last.as_secs_f64();
        let p99 = if series.samples.len() < 100 { String::new() } else { milliseconds(p99) };
        println!(
            "{:<WIDE$} {:>5} {:>11} {:>11} {p99:>11} {beside:>7.1}x",
            series.name,
            series.samples.len(),
            milliseconds(p50),
            milliseconds(p90)
        );
    }
    let added = together.first().unwrap().percentile(50).saturating_sub(last);
    println!("{:<WIDE$} {:>5} {:>11}\n", "what that adds", "", milliseconds(added));
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}
