//! The one table of keys. Dispatch, the key bar, the help screen, the manual and the names of
//! the configuration are made from it, so that they cannot disagree. [`super::keymap`] puts
//! keys of the user's own in place of these.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Leaves heaptop.
    Quit,
    /// Gives the terminal back for a while.
    Suspend,
    /// Opens the help, or closes it.
    Help,
    /// Goes to a screen.
    Go(Place),
    /// Goes to the next screen.
    NextScreen,
    /// Goes to the one before.
    FormerScreen,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Columns to the left, or closes a branch.
    Left,
    /// Columns to the right, or opens a branch.
    Right,
    /// Makes the selected row the focus.
    Drill,
    /// Back to where one came from.
    Back,
    /// Starts typing a filter.
    Filter,
    /// The blocks of one thread alone.
    NextThread {
        /// The next one.
        forward: bool,
    },
    /// Sorts by the next column.
    SortColumn,
    /// Turns the order round.
    SortDirection,
    /// Counts the next metric.
    Metric,
    /// Callers or callees; the root on top, or at the bottom.
    Invert,
    /// Starts typing what is looked for.
    Find,
    /// To the next frame that has it, or the one before.
    NextMatch {
        /// The next one.
        forward: bool,
    },
    /// A screen of its own that stands still.
    Freeze,
    /// Pauses the screen.
    Pause,
    /// Holds the order of rows.
    Hold,
    /// Opens the export menu, or closes it.
    Export,
    /// Writes what is selected in it.
    Write,
    /// Starts typing where to.
    Path,
    /// Copies the selected row.
    Copy,
    /// Everything as at the start.
    Reset,
    /// Rows are something else: files, crates, threads …
    Group,
    /// Opens the chooser of columns, or closes it.
    Columns,
    /// Shows a column or hides it.
    ToggleColumn,
    /// Moves a column to the left.
    ColumnLeft,
    /// Moves a column to the right.
    ColumnRight,
    /// All columns as at the start.
    ResetColumns,
    /// Counts growth from another mark.
    GrowthBase,
    /// Looks at a callsite closely.
    Details,
    /// Another time between automatic marks.
    Automatic,
    /// Starts typing a limit.
    Limit,
    /// Halves R.
    Finer,
    /// Doubles R.
    Coarser,
    /// Stops sampling or starts it again.
    Sampling,
    /// Names this moment.
    Mark,
    /// Moves the time cursor.
    Time(TimeKey),
    /// Records into a file, or ends that.
    Record,
    /// Records this moment alone.
    Snapshot,
    /// Lists the running targets.
    Targets,
    /// Attaches to the selected one.
    Attach,
    /// Starts the demo, and attaches to it.
    Demo,
    /// Asks what another nursery would promote.
    Nursery {
        /// The next larger one, or the next smaller.
        larger: bool,
    },
}

/// What a key does to the time cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeKey {
    /// A step back.
    Earlier,
    /// A step forward.
    Later,
    /// Many steps back.
    MuchEarlier,
    /// Many steps forward.
    MuchLater,
    /// The range begins here.
    Begin,
    /// The range ends here.
    End,
    /// It moves by itself, or stands still again.
    Play,
    /// The highest moment.
    Peak,
    /// Now again.
    Now,
}

/// Screens, as places where a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The callsites.
    Callsites,
    /// The callers.
    Callers,
    /// Callstacks as frames.
    Flame,
    /// The target over time.
    Timeline,
    /// What survives the nursery.
    Promotion,
    /// What is old, and what grew.
    Leaks,
    /// Who allocates, and who frees.
    Threads,
    /// A source file.
    Source,
    /// What was said.
    Log,
    /// One callsite closely.
    Details,
    /// The chooser of columns.
    Columns,
    /// The export menu.
    Export,
    /// The help.
    Help,
    /// What can be attached to.
    Targets,
}

/// A screen that has a number: its key, and its name in the header.
#[derive(Debug)]
pub struct Tab {
    /// Which.
    pub place: Place,
    /// The key that goes there.
    pub key: char,
    /// Its name, short.
    pub name: &'static str,
}

const fn tab(place: Place, key: char, name: &'static str) -> Tab {
    Tab { place, key, name }
}

/// All screens that have a number, in the order of the header and of Tab.
pub const TABS: &[Tab] = &[
    tab(Place::Callsites, '1', "Callsites"),
    tab(Place::Callers, '2', "Callers"),
    tab(Place::Flame, '3', "Flame"),
    tab(Place::Timeline, '4', "Time"),
    tab(Place::Promotion, '5', "Promotion"),
    tab(Place::Threads, '6', "Threads"),
    tab(Place::Leaks, '7', "Leaks"),
    tab(Place::Source, '8', "Source"),
    tab(Place::Log, '9', "Log"),
];

impl Place {
    /// All of them.
    pub const ALL: [Self; 14] = joined(&[EVERYWHERE]);

    /// Its title in the help.
    #[must_use]
    pub fn title(self) -> &'static str {
        let numbered = TABS.iter().find(|tab| tab.place == self).map(|tab| tab.name);
        numbered.unwrap_or(match self {
            Self::Details => "Details",
            Self::Columns => "the columns",
            Self::Export => "the export menu",
            Self::Targets => "the list of targets",
            _ => "the help",
        })
    }

    /// Its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Callsites => "callsites",
            Self::Callers => "callers",
            Self::Flame => "flame",
            Self::Timeline => "time",
            Self::Promotion => "promotion",
            Self::Leaks => "leaks",
            Self::Threads => "threads",
            Self::Source => "source",
            Self::Log => "log",
            Self::Details => "details",
            Self::Columns => "columns",
            Self::Export => "export",
            Self::Help => "help",
            Self::Targets => "targets",
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub struct Binding {
    /// The keys, before the user has chosen others.
    pub keys: &'static [Key],
    /// The keys as people read them.
    pub shown: &'static str,
    /// What the key bar says; empty: it is only in the help.
    pub short: &'static str,
    /// What the help says.
    pub says: &'static str,
    /// Where it works.
    pub places: &'static [Place],
    /// What it does.
    pub action: Action,
}

impl Binding {
    /// Its keys, as a terminal in its usual mode sends them: what tests press.
    #[must_use]
    pub fn sent(&self) -> Vec<String> {
        let sent = |key: &Key| match *key {
            Control(c) => Some(char::from(c as u8 & 0x1f).to_string()),
            Code(KeyCode::Char(c)) => Some(c.to_string()),
            Code(code) => {
                let known = [
                    (Enter, "\r"),
                    (Esc, "\x1b"),
                    (Backspace, "\x7f"),
                    (KeyCode::Tab, "\t"),
                    (BackTab, "\x1b[Z"),
                    (Up, "\x1b[A"),
                    (Down, "\x1b[B"),
                    (Right, "\x1b[C"),
                    (Left, "\x1b[D"),
                    (Home, "\x1b[H"),
                    (End, "\x1b[F"),
                    (PageUp, "\x1b[5~"),
                    (PageDown, "\x1b[6~"),
                ];
                known.iter().find(|(c, _)| *c == code).map(|(_, sent)| (*sent).to_owned())
            }
        };
        self.keys.iter().filter_map(sent).collect()
    }
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Without Control.
    Code(KeyCode),
    /// With Control, and a small letter.
    Control(char),
}

impl Key {
    /// Whether it was this one.
    #[must_use]
    pub fn is(self, event: &KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let other = event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER);
        match self {
            Code(code) => !control && !other && event.code == code,
            Control(c) => control && event.code == KeyCode::Char(c),
        }
    }
}

const fn char(c: char) -> Key {
    Code(KeyCode::Char(c))
}

use KeyCode::{BackTab, Backspace, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Up};

/// Lists of places one behind the other.
const fn joined<const N: usize>(lists: &[&[Place]]) -> [Place; N] {
    let mut all = [Place::Callsites; N];
    let (mut list, mut at) = (0, 0);
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            all[at] = lists[list][i];
            (at, i) = (at + 1, i + 1);
        }
        list += 1;
    }
    assert!(at == N, "N is how many there are");
    all
}

/// A list of places that is made of others.
macro_rules! places {
    ($($list:expr),+) => { &joined::<{ 0 $(+ $list.len())+ }>(&[$($list),+]) };
}

/// Screens of rows, frames or curves of what the target has.
pub const SCREENS: &[Place] = &[
    Place::Callsites,
    Place::Callers,
    Place::Flame,
    Place::Timeline,
    Place::Promotion,
    Place::Threads,
    Place::Leaks,
    Place::Source,
];
const LOG: &[Place] = &[Place::Log];
const CLOSELY: &[Place] = &[Place::Details];
const COLUMNS: &[Place] = &[Place::Columns];
const EXPORT: &[Place] = &[Place::Export];
const HELP: &[Place] = &[Place::Help];
const TARGETS: &[Place] = &[Place::Targets];
/// Where one can tell the target something: those that have a number.
const TELLING: &[Place] = places![SCREENS, LOG];
/// Those, and the details of what they show: all that is of one target.
const PANES: &[Place] = places![TELLING, CLOSELY];
/// Wherever there is a target that one could go to the screens of.
const NUMBERED: &[Place] = places![PANES, COLUMNS, EXPORT, HELP];
/// All places.
pub const EVERYWHERE: &[Place] = places![NUMBERED, TARGETS];
/// Where rows are callsites.
const ROWS: &[Place] = &[Place::Callsites, Place::Timeline, Place::Promotion];
const LEAKS: &[Place] = &[Place::Leaks];
const TREE: &[Place] = &[Place::Callers];
const FLAME: &[Place] = &[Place::Flame];
const SOURCE: &[Place] = &[Place::Source];
const THREADS: &[Place] = &[Place::Threads];
const SITES: &[Place] = &[Place::Callsites];
const SURVIVORS: &[Place] = &[Place::Promotion];
/// Where a callsite may be selected,
const CHOSEN: &[Place] = places![ROWS, TREE, LEAKS];
/// and where none is.
const UNCHOSEN: &[Place] = places![THREADS, LOG];
const GROWING: &[Place] = places![SITES, LEAKS];
/// What lies below callers and has nothing to come back to.
const LOWEST: &[Place] = places![ROWS, THREADS, LEAKS];
/// What lies above others.
const UPPER: &[Place] = places![TREE, CLOSELY];
/// Where rows have columns to sort by.
const SORTED: &[Place] = places![SITES, SURVIVORS, THREADS, LEAKS];
/// Where one metric is counted.
const COUNTED: &[Place] = places![TREE, FLAME, SOURCE];
/// Where one can go from one thing of note to the next.
const NOTED: &[Place] = places![FLAME, SOURCE];

macro_rules! bindings {
    ($([$($key:expr),+] $shown:literal $short:literal $places:ident $action:ident$(($with:expr))?$({$field:ident: $value:expr})? $says:literal;)*) => {
        &[$(Binding {
            keys: &[$($key),+],
            shown: $shown,
            short: $short,
            says: $says,
            places: $places,
            action: Action::$action$(($with))?$({ $field: $value })?,
        }),*]
    };
}

use Key::{Code, Control};

/// All keys, in the order in which the key bar and the help show them: by use, since a narrow
/// key bar has room for the first ones alone. Help and quit it shows in any case.
pub const BINDINGS: &[Binding] = bindings! {
    [Code(Enter)] "Enter" "callers" ROWS Drill "who calls the selected callsite";
    [Code(Enter)] "Enter" "details" LEAKS Details "look at the selected callsite closely";
    [Code(Enter)] "Enter" "callsites" THREADS Drill "the callsites of the selected thread, and of it alone on all screens";
    [Code(Enter)] "Enter" "focus" TREE Drill "make the selected frame the focus";
    [Code(Enter)] "Enter" "callers" SOURCE Drill "who calls what is at the selected line";
    [Code(Enter)] "Enter" "zoom" FLAME Drill "give the selected frame all the width; once more: zoom out";
    [Code(Esc), Code(Backspace)] "Esc, Backspace" "zoom out" FLAME Back "zoom out, or take the filter away";
    [Code(Esc), Code(Backspace)] "Esc, Backspace" "back" UPPER Back "back to where you came from";
    [Code(Esc), Code(Backspace)] "Esc, Backspace" "" LOWEST Back "leave the class, or take the filter away";
    [Code(Esc), Code(Backspace), Code(Enter), char('c')] "Esc, Backspace, Enter, c" "back" COLUMNS Columns "close the chooser of columns";
    [char(' ')] "Space" "show or hide" COLUMNS ToggleColumn "show the selected column, or hide it";
    [Code(Left), char('h'), char('<')] "Left, h, <" "move left" COLUMNS ColumnLeft "move the selected column to the left";
    [Code(Right), char('l'), char('>')] "Right, l, >" "move right" COLUMNS ColumnRight "move the selected column to the right";
    [char('r')] "r" "reset" COLUMNS ResetColumns "all columns as at the start";
    [Code(Enter)] "Enter" "write" EXPORT Write "write what is selected; the path is below";
    [char('p')] "p" "path" EXPORT Path "type another directory (~ is your home), or another name";
    [Code(Esc), Code(Backspace)] "Esc, Backspace" "back" EXPORT Back "close the menu, and write nothing";
    [Code(Esc), Code(Backspace)] "Esc, Backspace" "back" HELP Back "close the help";
    [Code(Enter)] "Enter" "attach" TARGETS Attach "attach to the selected target";
    [Code(Esc), Code(Backspace)] "Esc, Backspace" "back" TARGETS Back "leave off attaching, list all again, or back to where you came from";
    [char('/')] "/" "find" TARGETS Filter "list the targets alone whose name or pid has a text";
    [char('d')] "d" "demo" TARGETS Demo "start the built-in demo, and attach to it";
    [char('/')] "/" "filter" SCREENS Filter "filter by names, callers, threads, sizes, ages …: see below; Up, Down: those before";
    [char('d')] "d" "details" CHOSEN Details "look at the selected callsite closely: stacks, sizes, blocks, hints";
    [char('d')] "d" "" UNCHOSEN Details "say where a callsite can be selected, to look at it closely";
    [char('d')] "d" "details" NOTED Details "look closely at the callsite that the selected frame or line is";
    [char('e')] "e" "export" SCREENS Export "write what is shown: a flamegraph (SVG), folded stacks, or the table";
    [char('i')] "i" "invert" TREE Invert "callers of the focus, or what it calls";
    [char('i')] "i" "invert" FLAME Invert "icicle or flame: the root on top, or at the bottom";
    [char('f')] "f" "find" FLAME Find "mark the frames whose names have a text, and say how much goes through them";
    [char('n')] "n" "" NOTED NextMatch{forward: true} "to the next of them; in a source file to the next line with bytes";
    [char('N')] "N" "" NOTED NextMatch{forward: false} "to the one before";
    [char('M')] "M" "mark" PANES Mark "give the present moment a name, for all viewers";
    [char('>')] ">" "" SCREENS NextThread{forward: true} "the blocks of the next thread alone, on all screens; after the last: of all";
    [char('<')] "<" "" SCREENS NextThread{forward: false} "those of the one before";
    [char('s')] "s" "sort" SORTED SortColumn "sort by the next column";
    [char('S')] "S" "" SORTED SortDirection "turn the order round";
    [char('t')] "t" "group" SITES Group "group by callsite, function, file, crate or module, size class, thread";
    [char('c')] "c" "columns" SITES Columns "choose the columns and their order";
    [char('D')] "D" "since" GROWING GrowthBase "count growth from another mark, or from when heaptop came";
    [char('A')] "A" "auto marks" LEAKS Automatic "mark every 1, 5, 15 or 60 minutes by itself, or not any more";
    [char('L')] "L" "limit" LEAKS Limit "set a limit of bytes in use, for the forecast";
    [char('D')] "D" "growth" FLAME GrowthBase "say by how much frames grew, and colour those with evidence; then from another mark, then no more";
    [char('z')] "z" "freeze" FLAME Freeze "stay at this moment while the target goes on";
    [char('m')] "m" "metric" COUNTED Metric "count in use, allocated, promoted or short-lived; in the flamegraph growth as well";
    [char('m')] "m" "" SITES Metric "what an export counts";
    [char('[')] "[" "nursery" SURVIVORS Nursery{larger: false} "what a smaller nursery would promote";
    [char(']')] "]" "" SURVIVORS Nursery{larger: true} "what a larger nursery would promote";
    [char(' ')] "Space" "pause" PANES Pause "pause the screen, and what plays; the stream goes on";
    [char(',')] "," "time" PANES Time(TimeKey::Earlier) "time cursor back: all screens show that moment";
    [char('.')] "." "" PANES Time(TimeKey::Later) "time cursor forward";
    [char('(')] "(" "" PANES Time(TimeKey::MuchEarlier) "ten steps back";
    [char(')')] ")" "" PANES Time(TimeKey::MuchLater) "ten steps forward";
    [char('{')] "{" "" PANES Time(TimeKey::Begin) "a range of time begins at the cursor: all screens show that range";
    [char('}')] "}" "" PANES Time(TimeKey::End) "the range ends at the cursor";
    [char('p')] "p" "" PANES Time(TimeKey::Play) "play what was, from the cursor on, in 30 s at most; or stop there";
    [char('P')] "P" "" PANES Time(TimeKey::Peak) "the highest moment: what was in use then";
    [char('\\')] "\\" "" PANES Time(TimeKey::Now) "now again, or the end of a recording";
    [char('e')] "e" "" EXPORT Export "close the menu, and write nothing";
    [char('o')] "o" "hold order" SCREENS Hold "hold the order of rows while numbers move";
    [char('+'), char('=')] "+, =" "finer" TELLING Finer "sample twice as finely: R is halved, for all viewers; asks";
    [char('-')] "-" "" TELLING Coarser "sample half as finely: R is doubled, for all viewers; asks";
    [char('x')] "x" "" TELLING Sampling "stop sampling, or start it again, for all viewers; asks";
    [char('R')] "R" "" PANES Record "record into a file in the working directory, or end that";
    [char('W')] "W" "" PANES Snapshot "write a snapshot: a recording of this moment, in the working directory";
    [char('T')] "T" "" PANES Targets "list the running targets, to attach to another one";
    [char('?')] "?" "help" EVERYWHERE Help "this help";
    [char('q')] "q" "quit" EVERYWHERE Quit "quit; the target goes on";
    [char('1')] "1" "" NUMBERED Go(Place::Callsites) "callsites: who holds the heap";
    [char('2')] "2" "" NUMBERED Go(Place::Callers) "callers of the selected callsite";
    [char('3')] "3" "" NUMBERED Go(Place::Flame) "flamegraph: where in the program the bytes come from";
    [char('4')] "4" "" NUMBERED Go(Place::Timeline) "the target over time";
    [char('5')] "5" "" NUMBERED Go(Place::Promotion) "who survives the nursery, and who dies young";
    [char('6')] "6" "" NUMBERED Go(Place::Threads) "threads: who allocates, and who frees what others allocated";
    [char('7')] "7" "" NUMBERED Go(Place::Leaks) "leaks: what is old, what grew, and when a limit is reached";
    [char('8')] "8" "" NUMBERED Go(Place::Source) "source: the selected callsite's file, with bytes beside the lines";
    [char('9')] "9" "" NUMBERED Go(Place::Log) "log: what agent, connection and heaptop had to say";
    [Code(KeyCode::Tab)] "Tab" "" NUMBERED NextScreen "next screen";
    [Code(BackTab)] "Shift-Tab" "" NUMBERED FormerScreen "the screen before";
    [Code(Up), char('k')] "Up, k" "" EVERYWHERE Up "one row up";
    [Code(Down), char('j')] "Down, j" "" EVERYWHERE Down "one row down";
    [Code(PageUp)] "PgUp" "" EVERYWHERE PageUp "one page up";
    [Code(PageDown)] "PgDn" "" EVERYWHERE PageDown "one page down";
    [Code(Home), char('g')] "Home, g" "" EVERYWHERE First "to the first row";
    [Code(End), char('G')] "End, G" "" EVERYWHERE Last "to the last row";
    [Code(Left), char('h')] "Left, h" "" SITES Left "back to the first columns";
    [Code(Right), char('l')] "Right, l" "" SITES Right "columns that found no room";
    [Code(Left), char('h')] "Left, h" "" TREE Left "close the branch, or go to its parent";
    [Code(Right), char('l')] "Right, l" "" TREE Right "open the branch, or go to its first child";
    [Code(Left), char('h')] "Left, h" "" FLAME Left "to the frame beside it";
    [Code(Right), char('l')] "Right, l" "" FLAME Right "to the frame beside it";
    [Code(Left), char('h')] "Left, h" "" HELP Left "to the part of the help before";
    [Code(Right), char('l')] "Right, l" "next part" HELP Right "to the next part of the help";
    [char('y')] "y" "" SCREENS Copy "copy the selected row";
    [char('r')] "r" "" SCREENS Reset "the view as at the start: filter, sort, columns, group, metric, time, growth since the last mark, held order, pause; marks and the limit stay";
    [Control('z')] "^Z" "" EVERYWHERE Suspend "suspend; fg comes back";
    [Control('c')] "^C" "" EVERYWHERE Quit "quit";
};

/// What the signs on the screens mean.
pub const LEGEND: &[(&str, &str)] = &[
    ("±9 %", "95 % interval, by its larger half; on a share in points of percent"),
    ("<, ≥, ≤", "one-sided bounds, with 95 % confidence"),
    ("–", "not known: never the same as 0"),
    ("dim", "fewer than 5 samples stand behind it"),
    ("promoted", "share of the bytes born young that outlived the nursery's cycle"),
    ("nursery", "what a cycle of it is: so many bytes that the program allocates"),
    ("dies young", "the rest of them"),
    (
        "▲",
        "growth with evidence: in 95 % of cases no row has it by chance; at a heading: sorted by it",
    ),
    ("growth", "bytes in use now less those at the mark, or when heaptop came; once a second"),
    ("mean life", "of all blocks; > while the last of them live"),
    ("lifetime", "half of the blocks are dead by then; > when over half outlive it"),
    ("trend", "in use over the last minutes, from 0 to its largest"),
    ("cost", "CPU time that the agent takes in the target, in % of one core"),
    (
        "1 in 64 KiB",
        "the sampling interval R: mean bytes between samples; auto: the agent moves it",
    ),
    ("finer: R …", "what a finer R would give the selected row, if it goes on as lately"),
    ("dropped", "births are in no figure; stacks are in (other stacks); unsent are in totals only"),
    ("thinned", "how often R was doubled because the agent's memory bound was reached"),
    ("cum, flat", "with everything below it; at it alone"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::keymap::Keymap;

    fn action(event: &KeyEvent, place: Place) -> Option<Action> {
        Keymap::default().action(event, place)
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for &place in EVERYWHERE {
            let mut seen = Vec::new();
            for binding in BINDINGS.iter().filter(|b| b.places.contains(&place)) {
                for key in binding.keys {
                    let text = format!("{key:?}");
                    assert!(!seen.contains(&text), "{text} twice in {place:?}");
                    seen.push(text);
                }
            }
        }
    }

    #[test]
    fn each_key_is_one_that_a_terminal_sends() {
        for binding in BINDINGS {
            assert_eq!(binding.sent().len(), binding.keys.len(), "{}", binding.shown);
        }
    }

    #[test]
    fn each_screen_has_a_key_of_its_own() {
        for tab in TABS {
            let key = KeyEvent::new(KeyCode::Char(tab.key), KeyModifiers::NONE);
            for &place in NUMBERED {
                assert_eq!(action(&key, place), Some(Action::Go(tab.place)), "{}", tab.name);
            }
            assert!(PANES.contains(&tab.place));
        }
        assert_eq!(TABS.len(), SCREENS.len() + 1);
    }

    #[test]
    fn control_tells_keys_apart() {
        let c = |modifiers| action(&KeyEvent::new(KeyCode::Char('c'), modifiers), Place::Callsites);
        assert_eq!(c(KeyModifiers::CONTROL), Some(Action::Quit));
        assert_eq!(c(KeyModifiers::NONE), Some(Action::Columns));
        let s = KeyEvent::new(KeyCode::Char('S'), KeyModifiers::SHIFT);
        assert_eq!(action(&s, Place::Callsites), Some(Action::SortDirection));
        assert_eq!(action(&s, Place::Callers), None);
    }
}
