//! What the tables say by an expression, as far as it comes down to a rule.
//!
//! Two kinds of code have such frames. gcc's functions that align their stack keep where it was
//! in a slot: the caller's stack pointer is what lies at rbp − 8, and rbp itself is saved at
//! rbp. And a PLT, whose entries push a word half way: sp + 8 or sp + 16, by where in the entry
//! the address is, which is known when the rule is made. What needs more has no rule.

use gimli::{Encoding, EndianSlice, Expression, Format, NativeEndian, Operation, X86_64};

type Bytes<'a> = EndianSlice<'a, NativeEndian>;

/// What an expression comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    /// The stack pointer, plus so much.
    Sp(i64),
    /// rbp, plus so much.
    Rbp(i64),
    /// The word that lies at rbp, plus so much.
    AtRbp(i64),
}

impl Value {
    const fn plus(self, more: i64) -> Self {
        match self {
            Self::Number(number) => Self::Number(number.wrapping_add(more)),
            Self::Sp(offset) => Self::Sp(offset.wrapping_add(more)),
            Self::Rbp(offset) => Self::Rbp(offset.wrapping_add(more)),
            Self::AtRbp(_) => Self::AtRbp(i64::MIN),
        }
    }
}

/// Most values on the stack of an expression.
const MOST: usize = 8;

/// What an expression about the frame at `pc` comes to.
pub fn value(expression: Expression<Bytes<'_>>, pc: usize) -> Option<Value> {
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
    let mut operations = expression.operations(encoding);
    let (mut stack, mut len) = ([Value::Number(0); MOST], 0_usize);
    while let Some(operation) = operations.next().ok()? {
        let mut pop = || {
            len = len.checked_sub(1)?;
            stack.get(len).copied()
        };
        let value = match operation {
            Operation::Nop => continue,
            Operation::UnsignedConstant { value } => Value::Number(value.cast_signed()),
            Operation::SignedConstant { value } => Value::Number(value),
            Operation::RegisterOffset { register, offset, .. } => match register {
                X86_64::RSP => Value::Sp(offset),
                X86_64::RBP => Value::Rbp(offset),
                X86_64::RA => Value::Number((pc as u64).cast_signed().wrapping_add(offset)),
                _ => return None,
            },
            Operation::PlusConstant { value } => pop()?.plus(value.cast_signed()),
            Operation::Plus => match (pop()?, pop()?) {
                (Value::Number(more), value) | (value, Value::Number(more)) => value.plus(more),
                _ => return None,
            },
            Operation::Deref { size: 8, space: false, .. } => match pop()? {
                Value::Rbp(offset) => Value::AtRbp(offset),
                _ => return None,
            },
            Operation::And | Operation::Ge | Operation::Shl => {
                let (Value::Number(b), Value::Number(a)) = (pop()?, pop()?) else { return None };
                Value::Number(match operation {
                    Operation::And => a & b,
                    Operation::Ge => i64::from(a >= b),
                    _ => a.checked_shl(u32::try_from(b).ok()?)?,
                })
            }
            _ => return None,
        };
        if value == Value::AtRbp(i64::MIN) {
            return None;
        }
        *stack.get_mut(len)? = value;
        len += 1;
    }
    (len == 1).then_some(stack[0])
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn of(bytes: &[u8], pc: usize) -> Option<Value> {
        value(Expression(EndianSlice::new(bytes, NativeEndian)), pc)
    }

    #[test]
    fn aligned_stacks_and_plts_come_down_to_a_rule() {
        // DW_OP_breg6 −8, DW_OP_deref; DW_OP_breg6 0.
        assert_eq!(of(&[0x76, 0x78, 0x06], 0), Some(Value::AtRbp(-8)));
        assert_eq!(of(&[0x76, 0x00], 0), Some(Value::Rbp(0)));
        // DW_OP_breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus.
        let plt = [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!([of(&plt, 0x100a), of(&plt, 0x100b)], [Some(Value::Sp(8)), Some(Value::Sp(16))]);
    }

    #[test]
    fn what_needs_more_has_no_rule() {
        // rbx; a word at sp; a sum with what was read; nothing, two values, half an operation.
        for bytes in [
            &[0x73, 0x00][..],
            &[0x77, 0x00, 0x06],
            &[0x76, 0x00, 0x06, 0x23, 0x08],
            &[],
            &[0x31, 0x32],
            &[0x22],
            &[0x23],
            &[0x31; 9],
        ] {
            assert_eq!(of(bytes, 0), None, "{bytes:x?}");
        }
    }
}
