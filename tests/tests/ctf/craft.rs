//! Traces made by hand, of every version: for what no sample has, and for damage.

/// A trace under construction.
pub struct Craft {
    pub bytes: Vec<u8>,
    pub version: u16,
}

/// A packet under construction; its fields may be set to what they should not be.
#[derive(Clone)]
pub struct Packet {
    pub times: (i64, i64),
    pub pid: i64,
    pub domain: u16,
    pub check: (u16, u16, u64),
    pub ids: (i64, i64),
    pub body: Vec<u8>,
}

/// The process of all crafted traces.
pub const PID: i64 = 4242;
/// When they begin, microseconds since 1970: just before the low bits turn.
pub const START: i64 = (1_700_000_000_000_000 >> 25 << 25) - 10;

pub fn word(kind: u32, time: i64) -> [u8; 4] {
    (kind << 25 | (time & 0x1FF_FFFF) as u32).to_le_bytes()
}

pub fn variable(n: i64) -> Vec<u8> {
    let mut out = vec![255];
    out.extend(n.to_le_bytes());
    out
}

impl Craft {
    /// A trace that samples one word in ten.
    pub fn new(version: u16) -> Self {
        let mut body = word(0, START).to_vec();
        body.extend(0.1f64.to_le_bytes());
        body.push(64);
        body.extend(b"/bin/crafted\0host\0s=32768\0");
        body.extend(PID.to_le_bytes());
        if version >= 2 {
            body.push(0);
        }
        let mut craft = Self { bytes: Vec::new(), version };
        craft.put(&Packet { body, ..Packet::at(START, 0) });
        craft
    }

    pub fn put(&mut self, p: &Packet) -> &mut Self {
        let header = if self.version < 3 { 66 } else { 68 };
        let out = &mut self.bytes;
        out.extend(0xC1FC_1FC1_u32.to_le_bytes());
        out.extend(((header + p.body.len()) as u32 * 8).to_le_bytes());
        out.extend(p.times.0.to_le_bytes());
        out.extend(p.times.1.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.version.to_le_bytes());
        out.extend(p.pid.to_le_bytes());
        if self.version >= 3 {
            out.extend(p.domain.to_le_bytes());
        }
        out.extend(p.check.0.to_le_bytes());
        out.extend(p.check.1.to_le_bytes());
        out.extend(p.check.2.to_le_bytes());
        out.extend(p.ids.0.to_le_bytes());
        out.extend(p.ids.1.to_le_bytes());
        out.extend(&p.body);
        self
    }
}

impl Packet {
    /// An empty one at a time, whose next object is `id`.
    pub fn at(time: i64, id: i64) -> Self {
        Self {
            times: (time, time),
            pid: PID,
            domain: 0,
            check: (0xFFFF, 0, 0),
            ids: (id, id),
            body: Vec::new(),
        }
    }

    pub fn of(mut self, domain: u16) -> Self {
        self.domain = domain;
        self
    }

    fn event(&mut self, kind: u32, time: i64) {
        self.times.1 = self.times.1.max(time);
        self.body.extend(word(kind, time));
    }

    /// Code `code` is `m<code>.ml`, function `F<code>`, in full.
    pub fn define(self, time: i64, code: u64) -> Self {
        self.define_as(time, code, &[(31, 31, &format!("m{code}.ml"), &format!("F{code}"))])
    }

    /// Code `code` by indices into the tables, with names for 31; line 7, columns 1 to 9.
    pub fn define_as(mut self, time: i64, code: u64, places: &[(u64, u64, &str, &str)]) -> Self {
        self.event(1, time);
        self.body.extend(code.to_le_bytes());
        self.body.push(places.len() as u8);
        for (file, function, file_name, function_name) in places {
            let bits = 7 | 1 << 20 | 9 << 28 | file << 38 | function << 43;
            self.body.extend(&bits.to_le_bytes()[..6]);
            for (index, name) in [(file, file_name), (function, function_name)] {
                if *index == 31 {
                    self.body.extend(name.bytes());
                    self.body.push(0);
                }
            }
        }
        self
    }

    /// A birth of `length` words in the heap `source`, with `codes` as they are written.
    pub fn birth(mut self, time: i64, length: i64, source: u8, common: i64, codes: &[u8]) -> Self {
        self.event(2, time);
        self.body.extend(variable(length));
        self.body.extend(variable(1));
        self.body.push(source);
        self.body.extend(variable(common));
        let count = count(codes);
        self.body.extend(count.to_le_bytes());
        self.body.extend(codes);
        self.ids.1 += 1;
        self
    }

    pub fn promote(mut self, time: i64, back: i64) -> Self {
        self.event(3, time);
        self.body.extend(variable(back));
        self
    }

    pub fn collect(mut self, time: i64, back: i64) -> Self {
        self.event(4, time);
        self.body.extend(variable(back));
        self
    }
}

/// A code that is new, into a bucket.
pub fn miss(bucket: u16, code: u64) -> Vec<u8> {
    let mut out = (bucket << 2 | 3).to_le_bytes().to_vec();
    out.extend(code.to_le_bytes());
    out
}

/// A bucket, and so many that follow it.
pub fn hit(bucket: u16, follow: u8) -> Vec<u8> {
    let mut out = (bucket << 2 | u16::from(follow.min(2))).to_le_bytes().to_vec();
    if follow >= 2 {
        out.push(follow);
    }
    out
}

fn count(codes: &[u8]) -> u16 {
    let (mut at, mut n) = (0, 0);
    while at < codes.len() {
        at += [2, 2, 3, 10][usize::from(codes[at] & 3)];
        n += 1;
    }
    n
}
