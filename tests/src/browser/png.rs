//! The colours of a screenshot: as much of PNG as a browser writes, 8 bits a channel, RGB
//! with or without alpha, not interlaced.

use std::io::Read as _;

/// Pixels of a picture, in no more order than their sum needs.
pub struct Colours {
    pixels: Vec<[u8; 3]>,
}

impl Colours {
    /// Reads a PNG.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let broken = || "the screenshot is no PNG of the kind that browsers write".to_owned();
        let mut rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n").ok_or_else(broken)?;
        let (mut header, mut packed) = (None, Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let (kind, after) = after.split_at_checked(4).ok_or_else(broken)?;
            let (content, after) = after.split_at_checked(length).ok_or_else(broken)?;
            match kind {
                b"IHDR" => header = content.first_chunk::<13>().copied(),
                b"IDAT" => packed.extend_from_slice(content),
                _ => {}
            }
            // The checksum.
            rest = after.get(4..).ok_or_else(broken)?;
        }
        let header = header.ok_or_else(broken)?;
        let [width, height] = [0, 4].map(|at| {
            header[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word) as usize)
        });
        let channels = match header[8..] {
            [8, 2, 0, 0, 0] => 3,
            [8, 6, 0, 0, 0] => 4,
            _ => return Err(broken()),
        };
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..])
            .read_to_end(&mut lines)
            .map_err(|_| broken())?;
        if width == 0 || lines.len() != height * (width * channels + 1) {
            return Err(broken());
        }
        let mut above = vec![0; width * channels];
        let mut pixels = Vec::with_capacity(width * height);
        for line in lines.chunks_exact(width * channels + 1) {
            let mut line = line.to_vec();
            let filter = line.remove(0);
            unfilter(filter, &mut line, &above, channels).ok_or_else(broken)?;
            pixels.extend(line.chunks_exact(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]));
            above = line;
        }
        Ok(Self { pixels })
    }

    /// The share of pixels that are such.
    pub fn share(&self, such: impl Fn([u8; 3]) -> bool) -> f64 {
        let count = self.pixels.iter().filter(|pixel| such(**pixel)).count();
        count as f64 / self.pixels.len().max(1) as f64
    }
}

/// Undoes what a line was filtered with; `None` for a filter that there is none of.
fn unfilter(filter: u8, line: &mut [u8], above: &[u8], channels: usize) -> Option<()> {
    for at in 0..line.len() {
        let before = |line: &[u8]| at.checked_sub(channels).map_or(0, |left| line[left]);
        let (a, b, c) = (before(line), above[at], before(above));
        let guess = match filter {
            0 => 0,
            1 => a,
            2 => b,
            3 => u16::midpoint(a.into(), b.into()) as u8,
            4 => paeth(a, b, c),
            _ => return None,
        };
        line[at] = line[at].wrapping_add(guess);
    }
    Some(())
}

/// Of left, above and above left the one that is next to left + above − above left.
fn paeth(a: u8, b: u8, c: u8) -> u8 {
    let [left, above, corner] = [a, b, c].map(i16::from);
    let guess = left + above - corner;
    let [to_left, to_above, to_corner] = [left, above, corner].map(|of| guess.abs_diff(of));
    if to_left <= to_above && to_left <= to_corner {
        a
    } else if to_above <= to_corner {
        b
    } else {
        c
    }
}
