//! A second decoder of traces, which shares nothing with heaptop's own: written from the
//! format's description, of version 2 alone, and as strict as the strictest reader. It
//! reads a file of which all must be sound, and prints it as memtrace's tool does.

use std::collections::HashMap;
use std::fmt::Write as _;

type Fault = String;

/// A place: function, file, line, first and last column.
type Place = (Vec<u8>, Vec<u8>, u32, u32, u32);

/// All that a trace says.
#[derive(Debug, Default, PartialEq)]
pub struct Decoded {
    pub start: u64,
    pub rate: f64,
    pub word_size: u8,
    pub executable: String,
    pub parameters: String,
    pub context: String,
    pub pid: u64,
    pub packets: usize,
    pub checks: usize,
    pub births: Vec<Birth>,
    /// Time, object, and whether it is a promotion or else a death.
    pub ends: Vec<(u64, u64, bool)>,
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Birth {
    pub time: u64,
    pub length: u64,
    pub samples: u64,
    /// 0 minor, 1 major, 2 external.
    pub source: u8,
    pub functions: Vec<String>,
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn number(&mut self, bytes: usize) -> Result<u64, Fault> {
        let end = self.at + bytes;
        let slice = self.bytes.get(self.at..end).ok_or_else(|| format!("short at {}", self.at))?;
        self.at = end;
        Ok(slice.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn variable(&mut self) -> Result<u64, Fault> {
        match self.number(1)? {
            253 => match self.number(2)? {
                n if n < 253 => Err(format!("{n} in three bytes at {}", self.at)),
                n => Ok(n),
            },
            254 => match self.number(4)? {
                n if n >> 31 != 0 => Err(format!("a negative number at {}", self.at)),
                n => Ok(n),
            },
            255 => self.number(8),
            n => Ok(n),
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, Fault> {
        let mut string = Vec::new();
        loop {
            match self.number(1)? {
                0 => return Ok(string),
                byte => string.push(byte as u8),
            }
        }
    }
}

/// The state of the one stream.
#[derive(Default)]
struct Stream {
    files: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    places: HashMap<u64, Vec<Place>>,
    codes: HashMap<u64, u64>,
    next: HashMap<u64, u64>,
    last: Vec<u64>,
    time: u64,
    ids: u64,
    living: HashMap<u64, bool>,
}

const LOW: u64 = (1 << 25) - 1;

/// Decodes a whole trace, or says what is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<Decoded, Fault> {
    let mut out = Decoded::default();
    let mut stream = Stream::default();
    let mut start = 0;
    while start < bytes.len() {
        let mut input = Input { bytes, at: start };
        let fault = |what: &str| Err(format!("packet at {start}: {what}"));
        if input.number(4)? != 0xC1FC_1FC1 {
            return fault("no magic");
        }
        let bits = input.number(4)?;
        let end = start + bits as usize / 8;
        if bits % 8 != 0 || end - start > 32_768 || end > bytes.len() {
            return fault("impossible length");
        }
        let (begin, until) = (input.number(8)?, input.number(8)?);
        if input.number(4)? != 0 || input.number(2)? != 2 {
            return fault("flush time or version");
        }
        let pid = input.number(8)?;
        let check = (input.number(2)?, input.number(2)?, input.number(8)?);
        let ids = (input.number(8)?, input.number(8)?);
        if until < begin || until - begin > LOW || begin < stream.time {
            return fault("times");
        }
        if ids.0 != stream.ids {
            return fault("objects do not go on");
        }
        if check.0 != 0xFFFF {
            out.checks += 1;
            let held = |table: &HashMap<u64, u64>| table.get(&check.0).copied().unwrap_or(0);
            if held(&stream.next) != check.1 || held(&stream.codes) != check.2 {
                return fault("the table of callstacks is another");
            }
        }
        let mut input = Input { bytes: &bytes[..end], at: input.at };
        if out.packets == 0 {
            info(&mut input, &mut out)?;
            stream.time = begin;
            if (begin, until) != (out.start, out.start) || input.at != end || ids != (0, 0) {
                return fault("the first packet is not alone");
            }
        }
        if pid != out.pid {
            return fault("another pid");
        }
        while input.at < end {
            let word = input.number(4)?;
            let time = begin + ((word & LOW).wrapping_sub(begin & LOW) & LOW);
            if time < stream.time || time > until {
                return Err(format!("time {time} at {}", input.at));
            }
            stream.time = time;
            event(word >> 25, time, &mut input, &mut stream, &mut out)?;
        }
        if stream.ids != ids.1 {
            return fault("number of births");
        }
        out.packets += 1;
        start = end;
    }
    Ok(out)
}

fn info(input: &mut Input<'_>, out: &mut Decoded) -> Result<(), Fault> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let start = u64::from_le_bytes(input.bytes[8..16].try_into().unwrap());
    if input.number(4)? != start & LOW {
        return Err("the trace's first event".into());
    }
    out.start = start;
    out.rate = f64::from_bits(input.number(8)?);
    out.word_size = input.number(1)? as u8;
    out.executable = text(input.string()?);
    input.string()?;
    out.parameters = text(input.string()?);
    out.pid = input.number(8)?;
    out.context = text(input.string()?);
    Ok(())
}

fn event(
    kind: u64,
    time: u64,
    input: &mut Input<'_>,
    s: &mut Stream,
    out: &mut Decoded,
) -> Result<(), Fault> {
    let since = time - out.start;
    match kind {
        1 => location(input, s),
        2 | 101..=116 => {
            let (length, samples, source) = if kind == 2 {
                (input.variable()?, input.variable()?, input.number(1)? as u8)
            } else {
                (kind - 100, 1, 0)
            };
            if samples == 0 || source > 2 {
                return Err(format!("a birth at {}", input.at));
            }
            let common = input.variable()?;
            let count = input.number(if kind == 2 { 2 } else { 1 })?;
            callstack(input, s, common, count)?;
            let word = ["alloc", "alloc_major", "alloc_ext"][usize::from(source)];
            let mut line = format!("{since:010} {:010} {word} {samples} len={length}", s.ids);
            let _ = write!(line, "  {common:3}:");
            out.text.extend(line.bytes());
            let mut functions = Vec::new();
            for code in &s.last {
                let places = s.places.get(code).ok_or(format!("code {code} is not defined"))?;
                if places.is_empty() {
                    out.text.extend(format!(" ${code}").bytes());
                }
                for (function, file, line, from, to) in places {
                    functions.push(String::from_utf8_lossy(function).into_owned());
                    out.text.push(b' ');
                    out.text.extend(function);
                    out.text.push(b'@');
                    out.text.extend(file);
                    out.text.extend(format!(":{line}:{from}-{to}").bytes());
                }
            }
            out.text.push(b'\n');
            out.births.push(Birth { time: since, length, samples, source, functions });
            s.living.insert(s.ids, false);
            s.ids += 1;
            Ok(())
        }
        3 | 4 => {
            let back = input.variable()?;
            let id = (s.ids - 1).checked_sub(back).ok_or("an object before the first")?;
            let known = s.living.get_mut(&id).ok_or(format!("object {id} does not live"))?;
            if kind == 3 && std::mem::replace(known, true) {
                return Err(format!("object {id} is promoted twice"));
            }
            if kind == 4 {
                s.living.remove(&id);
            }
            let word = if kind == 3 { "promote" } else { "collect" };
            out.text.extend(format!("{since:010} {id:010} {word}\n").bytes());
            out.ends.push((since, id, kind == 3));
            Ok(())
        }
        _ => Err(format!("kind {kind} at {}", input.at)),
    }
}

fn location(input: &mut Input<'_>, s: &mut Stream) -> Result<(), Fault> {
    let from = input.at;
    let code = input.number(8)?;
    if code >> 62 != 0 {
        return Err(format!("code {code} is too large"));
    }
    let mut places = Vec::new();
    for _ in 0..input.number(1)? {
        let bits = input.number(6)?;
        let (file, function) = (bits >> 38 & 31, bits >> 43 & 31);
        let entry = if file == 31 {
            (input.string()?, Vec::new())
        } else if (file as usize) < s.files.len() {
            s.files.remove(file as usize)
        } else {
            return Err(format!("no file {file} at {}", input.at));
        };
        s.files.insert(0, entry);
        s.files.truncate(31);
        let functions = &mut s.files[0].1;
        let name = if function == 31 {
            input.string()?
        } else if (function as usize) < functions.len() {
            functions.remove(function as usize)
        } else {
            return Err(format!("no function {function} at {}", input.at));
        };
        functions.insert(0, name.clone());
        functions.truncate(31);
        let place = |shift: u64, most: u64| (bits >> shift & most) as u32;
        let file = s.files[0].0.clone();
        places.push((name, file, place(0, 0xF_FFFF), place(20, 0xFF), place(28, 0x3FF)));
    }
    if input.at - from > 4096 {
        return Err(format!("a location of {} bytes", input.at - from));
    }
    match s.places.insert(code, places.clone()) {
        Some(other) if other != places => Err(format!("code {code} is defined otherwise")),
        _ => Ok(()),
    }
}

fn callstack(input: &mut Input<'_>, s: &mut Stream, common: u64, count: u64) -> Result<(), Fault> {
    let before = s.last.clone();
    let whole = common as usize <= before.len();
    s.last.truncate(common as usize);
    let mut place = 0;
    for _ in 0..count {
        let word = input.number(2)?;
        let bucket = word >> 2;
        s.next.insert(place, bucket);
        let follow = match word & 3 {
            2 => input.number(1)?,
            3 => {
                let code = input.number(8)?;
                s.codes.insert(bucket, code);
                0
            }
            tag => tag,
        };
        place = bucket;
        s.last.push(s.codes.get(&place).copied().unwrap_or(0));
        for _ in 0..follow {
            place = s.next.get(&place).copied().unwrap_or(0);
            s.last.push(s.codes.get(&place).copied().unwrap_or(0));
        }
    }
    if !whole {
        s.last = before;
    }
    Ok(())
}
