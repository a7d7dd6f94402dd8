// A table whose cells are shaded by one hue: it can be read, searched and walked with the arrow keys like any table.
import {useRef, useState} from 'preact/hooks';

export interface Cell {
  text: string;
  shade: number | null;  // 0 to 1; null: nothing is known
  about: [string, string][];
  mark?: string;  // a small sign for what is not as it should be
}

export interface Line {
  name: string;
  href?: string;
}

export function Matrix(props: {label: string; corner: string; rows: Line[]; columns: Line[]; cell: (row: number, column: number) => Cell}) {
  const [at, setAt] = useState<[number, number]>([0, 0]);
  const table = useRef<HTMLTableElement>(null);
  const [row, column] = [Math.min(at[0], props.rows.length - 1), Math.min(at[1], props.columns.length - 1)];

  const move = (event: KeyboardEvent) => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    const next: [number, number] = [
      Math.max(0, Math.min(props.rows.length - 1, row + (step[0] ?? 0))),
      Math.max(0, Math.min(props.columns.length - 1, column + (step[1] ?? 0))),
    ];
    setAt(next);
    table.current?.querySelector<HTMLElement>(`[data-at="${next[0]},${next[1]}"]`)?.focus();
  };

  const shown = props.rows.length > 0 && props.columns.length > 0 ? props.cell(row, column) : null;
  return (
    <div class="matrix-box">
      <div class="matrix-scroll">
        <table class="matrix" aria-label={props.label} ref={table} onKeyDown={move}>
          <thead>
            <tr>
              <th scope="col">{props.corner}</th>
              {props.columns.map((line) => <th scope="col" key={line.name} title={line.name}><span><Name {...line} /></span></th>)}
            </tr>
          </thead>
          <tbody>
            {props.rows.map((line, i) => (
              <tr key={line.name}>
                <th scope="row" title={line.name}><Name {...line} /></th>
                {props.columns.map((_, j) => {
                  const cell = props.cell(i, j);
                  const shade = cell.shade === null ? {} : {'--t': `${Math.round(cell.shade * 100)}%`};
                  return (
                    <td
                      key={j}
                      tabIndex={i === row && j === column ? 0 : -1}
                      data-at={`${i},${j}`}
                      class={(cell.shade === null ? 'none' : cell.shade > 0.75 ? 'deep' : cell.shade > 0.6 ? 'middle' : '') + (i === row && j === column ? ' here' : '')}
                      style={shade}
                      onFocus={() => setAt([i, j])}
                      onMouseEnter={() => setAt([i, j])}
                    >
                      {cell.text}
                      {cell.mark && <sup>{cell.mark}</sup>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown && (
        <p class="matrix-about" aria-live="polite">
          <strong>{props.rows[row]?.name}</strong> · <strong>{props.columns[column]?.name}</strong>
          {shown.about.map(([name, value]) => <span key={name}><small>{name}</small> {value}</span>)}
        </p>
      )}
    </div>
  );
}

function Name({name, href}: Line) {
  return href ? <a href={href}>{name}</a> : <>{name}</>;
}
